package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// NATS is a client's connection to a NATS server, over TCP or its WebSocket.
type NATS struct {
	net.Conn
	id      string
	r       *bufio.Reader
	socket  bool   // over WebSocket
	streams string // what comes before the subjects that a JetStream stream takes; empty for plain NATS
}

// NATSConfig says how a client speaks to NATS.
type NATSConfig struct {
	WebSocket bool
	Prefix    string // subjects of a JetStream stream to publish to, such as "log."; it republishes to "live." and these
}

// DialNATS connects a client that listens for what is sent to id.
func DialNATS(addr, id string, cfg NATSConfig) (*NATS, error) {
	n := &NATS{id: id, socket: cfg.WebSocket, streams: cfg.Prefix}
	if cfg.WebSocket {
		s, err := Upgrade(addr, "/")
		if err != nil {
			return nil, err
		}
		n.Conn, n.r = s, bufio.NewReaderSize(s, readBuffer)
	} else {
		c, err := net.DialTimeout("tcp", addr, Patience)
		if err != nil {
			return nil, err
		}
		n.Conn, n.r = c, bufio.NewReaderSize(c, readBuffer)
	}
	n.SetDeadline(time.Now().Add(Patience))
	if err := n.greet(); err != nil {
		n.Close()
		return nil, err
	}
	n.SetDeadline(time.Time{})
	return n, nil
}

func (n *NATS) greet() error {
	if line, err := n.r.ReadSlice('\n'); err != nil || !bytes.HasPrefix(line, []byte("INFO")) {
		return fmt.Errorf("NATS greets with %.40q: %w", line, err)
	}
	err := n.say("CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"echo\":true,\"protocol\":1}\r\n")
	if err != nil {
		return err
	}
	if n.streams != "" {
		err = n.say("SUB _INBOX." + n.id + ".* 2\r\n") // acknowledgements
	}
	if err != nil {
		return err
	}
	return n.listen("agent."+n.id, 1)
}

func (n *NATS) say(text string) error {
	b := []byte(text)
	if n.socket {
		b = AppendBinary(nil, text, nil, "")
	}
	_, err := n.Write(b)
	return err
}

// listen subscribes, under a number that no other subscription of the connection has, and returns when the server has the subscription.
func (n *NATS) listen(subject string, sid int) error {
	if n.streams != "" {
		subject = "live." + n.streams + subject
	}
	if err := n.say(fmt.Sprintf("SUB %s %d\r\nPING\r\n", subject, sid)); err != nil {
		return err
	}
	for {
		line, err := n.r.ReadSlice('\n')
		switch {
		case err != nil:
			return fmt.Errorf("subscribe: %w", err)
		case bytes.HasPrefix(line, []byte("PONG")):
			return nil
		case bytes.HasPrefix(line, []byte("-ERR")):
			return fmt.Errorf("NATS says %s", line)
		}
	}
}

// Stream returns what carries chunks to another client: NATS has no streams, so these are messages like any other.
func (n *NATS) Stream(to string) (Line, error) { return n.line("agent." + to), nil }

// Message returns what carries messages to another client; only JetStream receipts them.
func (n *NATS) Message(to string) (Line, error) {
	if n.streams == "" {
		return nil, ErrNone
	}
	return n.Stream(to)
}

// Space subscribes to a subject and returns what publishes to it.
func (n *NATS) Space(name string) (Line, error) {
	return n.line("space." + name), n.listen("space."+name, 4)
}

func (n *NATS) line(subject string) Line {
	frame := func(dst, head, text, tail []byte) []byte {
		return append(append(append(dst, head...), text...), tail...)
	}
	if n.socket {
		frame = AppendBinary
	}
	head, reply := "PUB "+n.streams+subject+" ", "_INBOX."+n.id+"."
	return func(dst []byte, id uint64, text []byte) []byte {
		var b [160]byte
		h := append(b[:0], head...)
		if n.streams != "" { // as every publish to JetStream that is to be acknowledged
			h = append(strconv.AppendUint(append(h, reply...), id, 10), ' ')
		}
		h = append(strconv.AppendInt(h, int64(len(text)), 10), "\r\n"...)
		return frame(dst, h, text, []byte("\r\n"))
	}
}

// Receive hands on what arrives until the connection ends.
func (n *NATS) Receive(h Handler) error {
	for {
		line, err := n.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch {
		case bytes.HasPrefix(line, []byte("MSG ")), bytes.HasPrefix(line, []byte("HMSG ")):
			err = n.message(line, h)
		case bytes.HasPrefix(line, []byte("PING")):
			err = n.say("PONG\r\n")
		case bytes.HasPrefix(line, []byte("-ERR")):
			h.Fault(string(line))
		}
		if err != nil {
			return err
		}
	}
}

// message reads what follows a head: "MSG subject sid [reply] size", or "HMSG … header-size size".
func (n *NATS) message(head []byte, h Handler) error {
	withHeader := head[0] == 'H'
	words := bytes.TrimRight(head, "\r\n")
	at := bytes.LastIndexByte(words, ' ')
	size, skip := int(number(words[at+1:])), 0
	if withHeader {
		skip = int(number(words[bytes.LastIndexByte(words[:at], ' ')+1:]))
	}
	var id uint64
	_, subject, _ := bytes.Cut(words, []byte{' '})
	acked := bytes.HasPrefix(subject, []byte("_INBOX."))
	if acked {
		subject, _, _ = bytes.Cut(subject, []byte{' '})
		id = number(subject[bytes.LastIndexByte(subject, '.')+1:])
	}
	body, err := n.r.Peek(size + 2)
	if err != nil {
		return err
	}
	switch {
	case acked && bytes.Contains(body, []byte(`"error"`)):
		h.Fault(string(body))
	case acked:
		h.Receipt(id)
	default:
		h.Text(body[skip:size])
	}
	_, err = n.r.Discard(size + 2)
	return err
}

// Ask sends a request and returns its answer. Nothing else may be under way on the connection.
func (n *NATS) Ask(subject string, body []byte) ([]byte, error) {
	n.SetDeadline(time.Now().Add(2 * time.Second))
	defer n.SetDeadline(time.Time{})
	inbox := "_INBOX." + n.id + ".ask"
	err := n.say(fmt.Sprintf("SUB %s 3\r\nPUB %s %s %d\r\n%s\r\n", inbox, subject, inbox, len(body), body))
	for err == nil {
		line, err := n.r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(line, []byte("MSG "+inbox)) {
			words := bytes.Fields(line)
			answer := make([]byte, number(words[len(words)-1]))
			_, err := io.ReadFull(n.r, answer)
			return answer, err
		}
	}
	return nil, err
}
