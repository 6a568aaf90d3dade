// Package socket is the raw client of WebSocket below every load: one goroutine and one small buffer a connection, one
// write a frame, many frames read at once, and masks of zeros.
package socket

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Buffer is how many bytes a connection reads at once, unless it is told otherwise.
const Buffer = 8 << 10

// maxFrame bounds what a connection takes from its server in one frame.
const maxFrame = 64 << 20

// Conn is a client's connection. One goroutine reads; any may write.
type Conn struct {
	Timed
	r    *bufio.Reader
	long []byte // the last frame that was larger than the buffer; the reader's own
	left int    // bytes of the current frame that Read has not given yet; the reader's own
}

// New returns a connection whose handshake is over, with a buffer of a size; [Buffer] if that is zero.
func New(nc net.Conn, buffer int) *Conn {
	if buffer == 0 {
		buffer = Buffer
	}
	c := &Conn{Timed: Timed{Conn: nc}}
	c.r = bufio.NewReaderSize(&c.Timed, buffer)
	return c
}

// ClosedError is how a server ended a connection.
type ClosedError struct {
	Code   int // of the close frame; 0 if it had none
	Reason string
}

func (e *ClosedError) Error() string { return fmt.Sprintf("closed with %d %s", e.Code, e.Reason) }

// NetConn returns the connection below.
func (c *Conn) NetConn() net.Conn { return c.Timed.Conn }

// Next returns what the next text or binary frame says, which is good until Next is called again. It blocks until one
// comes, answers pings meanwhile, and returns a *ClosedError when the server closes the connection in order.
func (c *Conn) Next() ([]byte, error) {
	n, err := c.head()
	if err != nil {
		return nil, err
	}
	return c.take(n)
}

// Read reads what text and binary frames say as one stream of bytes. A connection is read by Next or by Read, not by
// both.
func (c *Conn) Read(p []byte) (int, error) {
	for c.left == 0 {
		n, err := c.head()
		if err != nil {
			return 0, err
		}
		c.left = n
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// head reads up to what the next text or binary frame says, and returns how many bytes that has.
func (c *Conn) head() (int, error) {
	for {
		op, n, err := c.frame()
		if err != nil || op == opText || op == opBinary {
			return n, err
		}
		payload, err := c.take(n)
		if err == nil {
			err = c.control(op, payload)
		}
		if err != nil {
			return 0, err
		}
	}
}

// control answers a frame that is no message.
func (c *Conn) control(op byte, payload []byte) error {
	switch op {
	case opPing:
		return c.Send(appendFrame(nil, opPong, payload))
	case opPong:
		return nil
	case opClose:
		if len(payload) < 2 {
			return &ClosedError{}
		}
		return &ClosedError{int(binary.BigEndian.Uint16(payload)), string(payload[2:])}
	}
	return fmt.Errorf("frame of kind %d", op)
}

// frame reads the head of a frame. Servers send each message as one.
func (c *Conn) frame() (op byte, size int, err error) {
	head, err := c.r.Peek(2)
	if err != nil {
		return 0, 0, err
	}
	if head[0]&0xf0 != 0x80 || head[1]&0x80 != 0 {
		return 0, 0, errors.New("a message in pieces, or masked")
	}
	op, skip, n := head[0]&15, 2, uint64(head[1])
	if n >= 126 {
		skip += 2 << (2 * (n - 126)) // 2 or 8 bytes
		if head, err = c.r.Peek(skip); err != nil {
			return 0, 0, err
		}
		if n = uint64(binary.BigEndian.Uint16(head[2:])); skip == 10 {
			n = binary.BigEndian.Uint64(head[2:])
		}
	}
	if n > maxFrame {
		return 0, 0, fmt.Errorf("a frame of %d bytes", n)
	}
	_, _ = c.r.Discard(skip) // was peeked at
	return op, int(n), nil
}

// take reads n bytes; they stay where they are while the buffer can hold them.
func (c *Conn) take(n int) ([]byte, error) {
	if n <= c.r.Size() {
		b, err := c.r.Peek(n)
		_, _ = c.r.Discard(len(b)) // was peeked at
		return b, err
	}
	if cap(c.long) < n {
		c.long = make([]byte, n)
	}
	_, err := io.ReadFull(c.r, c.long[:n])
	return c.long[:n], err
}

// Close says goodbye and ends the connection. It does not wait for the server's answer.
func (c *Conn) Close() error {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // the server may read nothing any more
	_ = c.Send(appendFrame(nil, opClose, []byte{1000 >> 8, 1000 & 0xff}))
	return c.Timed.Conn.Close()
}

// Cut breaks the connection without a word, as a machine that fails does.
func (c *Conn) Cut() error { return Cut(c.Timed.Conn) }

// Cut breaks a connection without a word, also one of TLS.
func Cut(nc net.Conn) error {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn() // the other one says goodbye
	}
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // a reset; a socket that is closed already needs none
	}
	return nc.Close()
}

// Until has a read or write that blocks return when ctx ends, until the function that it returns is called.
func (c *Conn) Until(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}
