// Package wire has the client side of the protocols that are compared, as bare
// as each of them allows, so that what is measured are the servers. They are
// alike: whatever is sent is one write, and reads go through a buffer of one size.
package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"time"
)

// readBuffer is the size of every client's buffer for reading.
const readBuffer = 8 << 10

// Patience is how long a server may take to answer a connection's first words.
const Patience = 30 * time.Second

const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// Socket is a WebSocket connection. One goroutine may read, any may write.
type Socket struct {
	net.Conn
	r    *bufio.Reader
	left int // bytes of the current frame that Read has not given yet
}

// Upgrade connects to addr and asks for a WebSocket at a path, with header lines if any.
func Upgrade(addr, path string, header ...string) (*Socket, error) {
	nc, err := net.DialTimeout("tcp", addr, Patience)
	if err != nil {
		return nil, err
	}
	s := &Socket{Conn: nc, r: bufio.NewReaderSize(nc, readBuffer)}
	if err := s.handshake(addr, path, header); err != nil {
		nc.Close()
		return nil, fmt.Errorf("upgrade at %s: %w", addr, err)
	}
	return s, nil
}

func (s *Socket) handshake(addr, path string, header []string) error {
	lines := append([]string{
		"GET " + path + " HTTP/1.1", "Host: " + addr, "Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
	}, header...)
	s.SetDeadline(time.Now().Add(Patience)) // and nobody takes it away: see Ready
	if _, err := io.WriteString(s, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		return err
	}
	head := textproto.NewReader(s.r)
	status, err := head.ReadLine()
	if err != nil {
		return err
	}
	if !strings.Contains(status, " 101 ") {
		return fmt.Errorf("answered %q", status)
	}
	_, err = head.ReadMIMEHeader()
	return err
}

// Ready says that the connection's first words have been answered: from now on it may be silent for as long as it likes.
func (s *Socket) Ready() { s.SetDeadline(time.Time{}) }

// Close says goodbye and ends the connection.
func (s *Socket) Close() error {
	s.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = s.Write(appendFrame(nil, opClose, "\x03\xe8", nil, "")) // 1000; it may be gone already
	return s.Cut()
}

// Cut ends the connection without a word.
func (s *Socket) Cut() error { return s.Conn.Close() }

// Next returns the payload of the next text or binary frame, which is good
// until the next call. Pings are answered on the way. Messages in fragments are not understood: no server here sends any.
func (s *Socket) Next() ([]byte, error) {
	for {
		op, n, err := s.head()
		if err != nil {
			return nil, err
		}
		payload, err := s.take(n)
		if err != nil {
			return nil, err
		}
		if op == opText || op == opBinary {
			return payload, nil
		}
		if err := s.control(op, payload); err != nil {
			return nil, err
		}
	}
}

// Read reads the payloads of binary frames as one stream of bytes.
func (s *Socket) Read(p []byte) (int, error) {
	for s.left == 0 {
		op, n, err := s.head()
		if err != nil {
			return 0, err
		}
		if op == opText || op == opBinary {
			s.left = n
			continue
		}
		payload, err := s.take(n)
		if err != nil {
			return 0, err
		}
		if err := s.control(op, payload); err != nil {
			return 0, err
		}
	}
	n, err := s.r.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// head reads the head of a frame.
func (s *Socket) head() (op byte, n int, err error) {
	b, err := s.r.Peek(2)
	if err != nil {
		return 0, 0, err
	}
	op, n, size := b[0]&15, int(b[1]&127), 2
	switch n {
	case 126:
		if b, err = s.r.Peek(4); err != nil {
			return 0, 0, err
		}
		n, size = int(binary.BigEndian.Uint16(b[2:])), 4
	case 127:
		if b, err = s.r.Peek(10); err != nil {
			return 0, 0, err
		}
		n, size = int(binary.BigEndian.Uint64(b[2:])), 10
	}
	_, err = s.r.Discard(size)
	return op, n, err
}

// take returns the next n bytes, without a copy where they fit the buffer.
func (s *Socket) take(n int) ([]byte, error) {
	if n > readBuffer {
		b := make([]byte, n)
		_, err := io.ReadFull(s.r, b)
		return b, err
	}
	b, err := s.r.Peek(n)
	if err == nil {
		_, err = s.r.Discard(n)
	}
	return b, err
}

func (s *Socket) control(op byte, payload []byte) error {
	switch op {
	case opPing:
		_, err := s.Write(appendFrame(nil, opPong, "", payload, ""))
		return err
	case opClose:
		return fmt.Errorf("closed by the server: %q", payload)
	}
	return nil
}

// AppendText appends a text frame of head, text and tail as a client sends it.
// Its mask is nothing, which is as good as any: servers unmask all the same.
func AppendText[S bytestring](dst []byte, head S, text []byte, tail S) []byte {
	return appendFrame(dst, opText, head, text, tail)
}

// AppendBinary is [AppendText] for a binary frame.
func AppendBinary[S bytestring](dst []byte, head S, text []byte, tail S) []byte {
	return appendFrame(dst, opBinary, head, text, tail)
}

type bytestring interface{ string | []byte }

func appendFrame[S bytestring](dst []byte, op byte, head S, text []byte, tail S) []byte {
	dst = append(dst, 0x80|op)
	switch n := len(head) + len(text) + len(tail); {
	case n < 126:
		dst = append(dst, 0x80|byte(n))
	case n < 1<<16:
		dst = append(dst, 0x80|126, byte(n>>8), byte(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, 0x80|127), uint64(n))
	}
	dst = append(dst, 0, 0, 0, 0)
	return append(append(append(dst, head...), text...), tail...)
}
