package wire

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/agora-relay/agora/internal/loadgen"
	"github.com/agora-relay/agora/internal/loadgen/socket"
)

// NATS is a client's connection to a NATS server, over TCP or its WebSocket.
type NATS struct {
	timed
	id      string
	r       *bufio.Reader
	socket  bool   // over WebSocket
	streams string // what comes before the subjects that a JetStream stream takes; empty for plain NATS
}

// timed is a connection that knows when what it read last had come.
type timed interface {
	net.Conn
	Send(b []byte) error
	At() int64
}

// NATSConfig says how a client speaks to NATS.
type NATSConfig struct {
	WebSocket bool
	Prefix    string // subjects of a JetStream stream to publish to, such as "log."; it republishes to "live." and these
}

// DialNATS connects a client that listens for what is sent to id.
func DialNATS(ctx context.Context, addr, id string, cfg NATSConfig) (*NATS, error) {
	n := &NATS{id: id, socket: cfg.WebSocket, streams: cfg.Prefix}
	if cfg.WebSocket {
		s, err := upgrade(ctx, addr, "/", "")
		if err != nil {
			return nil, err
		}
		n.timed = s
	} else {
		c, err := connect(ctx, addr)
		if err != nil {
			return nil, err
		}
		n.timed = c
	}
	n.r = bufio.NewReaderSize(n, readBuffer)
	return n, greeted(n, n.greet)
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
		b = socket.AppendBinary(nil, text)
	}
	return n.Send(b)
}

// listen subscribes, under a number that no other subscription of the connection has, and returns when the server has
// the subscription.
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

// Open implements loadgen.Agent. NATS has no streams: chunks are messages like any other. Only JetStream receipts them.
func (n *NATS) Open(_ context.Context, w loadgen.Way) (loadgen.Line, error) {
	subject := "agent." + w.To
	switch w.Kind {
	case loadgen.OneShot:
		if n.streams == "" {
			return nil, loadgen.ErrNone
		}
	case loadgen.FanOut:
		subject = "space." + w.To
		if err := n.listen(subject, 4); err != nil {
			return nil, err
		}
	}
	head := "PUB " + n.streams + subject + " "
	if n.streams != "" { // as every publish to JetStream that is to be acknowledged
		head += "_INBOX." + n.id + "." + loadgen.Blank + " "
	}
	publish := fmt.Sprintf("%s%d\r\n%s\r\n", head, len(w.Text), w.Text)
	if n.socket {
		return loadgen.NewTemplate(socket.AppendBinary(nil, publish)), nil
	}
	return loadgen.NewTemplate([]byte(publish)), nil
}

// Cut implements loadgen.Agent.
func (n *NATS) Cut() error { return n.Close() }

// Receive implements loadgen.Agent.
func (n *NATS) Receive(r loadgen.Receiver) error {
	for {
		line, err := n.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch {
		case bytes.HasPrefix(line, []byte("MSG ")), bytes.HasPrefix(line, []byte("HMSG ")):
			err = n.message(line, r)
		case bytes.HasPrefix(line, []byte("PING")):
			err = n.say("PONG\r\n")
		case bytes.HasPrefix(line, []byte("-ERR")):
			fault(r, line)
		}
		if err != nil {
			return err
		}
	}
}

// message reads what follows a head: "MSG subject sid [reply] size", or "HMSG … header-size size".
func (n *NATS) message(head []byte, r loadgen.Receiver) error {
	withHeader := head[0] == 'H'
	words := bytes.TrimRight(head, "\r\n")
	at := bytes.LastIndexByte(words, ' ')
	size, skip := int(number(words[at+1:])), 0
	if withHeader {
		skip = int(number(words[bytes.LastIndexByte(words[:at], ' ')+1:]))
	}
	var receipt loadgen.Stamp
	_, subject, _ := bytes.Cut(words, []byte{' '})
	acked := bytes.HasPrefix(subject, []byte("_INBOX."))
	if acked {
		subject, _, _ = bytes.Cut(subject, []byte{' '})
		receipt, _ = loadgen.Find(subject)
	}
	body, err := n.r.Peek(size + 2)
	if err != nil {
		return err
	}
	switch {
	case acked && bytes.Contains(body, []byte(`"error"`)):
		fault(r, body)
	case acked:
		r.Receipted(receipt, n.At())
	default:
		arrived(r, body[skip:size], n.At())
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
