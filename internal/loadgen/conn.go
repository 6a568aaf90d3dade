package loadgen

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

	"github.com/agora-relay/agora"
)

// Opcodes of WebSocket frames.
const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// maxFrame bounds what a connection takes from its edge in one frame.
const maxFrame = 64 << 20

// Conn is the connection of one agent. One goroutine reads; any may write.
type Conn struct {
	ID    string // of the agent
	Token string // resumes its session
	Last  uint64 // position after which the edge began

	nc   net.Conn
	r    *bufio.Reader
	at   int64  // when what is being read came, in Ticks; the reader's own
	long []byte // the last frame that was larger than the buffer; the reader's own
}

// ClosedError is how an edge ended a connection.
type ClosedError struct {
	Code   int // of the close frame; 0 if it had none
	Reason string
}

func (e *ClosedError) Error() string { return fmt.Sprintf("closed with %d %s", e.Code, e.Reason) }

// Write writes whole frames, as [AppendText] makes them. It blocks while the edge reads no further.
func (c *Conn) Write(frames []byte) error {
	_, err := c.nc.Write(frames)
	return err
}

// NetConn returns the connection below.
func (c *Conn) NetConn() net.Conn { return c.nc }

// At returns when the frame that Next returned last had come, in [agora.Ticks].
// Frames that came together share their time.
func (c *Conn) At() int64 { return c.at }

// Next returns the next frame of the protocol, which is good until Next is called again. It blocks until one comes,
// answers pings meanwhile, and returns a *ClosedError when the edge closes the connection in order.
func (c *Conn) Next() ([]byte, error) {
	for {
		op, payload, err := c.frame()
		if err != nil {
			return nil, err
		}
		switch op {
		case opText:
			return payload, nil
		case opPing:
			if err := c.Write(appendFrame(nil, opPong, payload)); err != nil {
				return nil, err
			}
		case opClose:
			return nil, closed(payload)
		case opPong:
		default:
			return nil, fmt.Errorf("frame of kind %d", op)
		}
	}
}

func closed(payload []byte) error {
	if len(payload) < 2 {
		return &ClosedError{}
	}
	return &ClosedError{int(binary.BigEndian.Uint16(payload)), string(payload[2:])}
}

// frame reads one WebSocket frame. Edges send each message as one.
func (c *Conn) frame() (op byte, payload []byte, err error) {
	head, err := c.peek(2)
	if err != nil {
		return 0, nil, err
	}
	if head[0]&0xf0 != 0x80 || head[1]&0x80 != 0 {
		return 0, nil, errors.New("a message in pieces, or masked")
	}
	op, skip, n := head[0]&15, 2, uint64(head[1])
	if n >= 126 {
		skip += 2 << (2 * (n - 126)) // 2 or 8 bytes
		if head, err = c.peek(skip); err != nil {
			return 0, nil, err
		}
		if n = uint64(binary.BigEndian.Uint16(head[2:])); skip == 10 {
			n = binary.BigEndian.Uint64(head[2:])
		}
	}
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	_, _ = c.r.Discard(skip) // was peeked at
	payload, err = c.take(int(n))
	return op, payload, err
}

// peek returns the next n bytes, and notes the time if they had to be waited for.
func (c *Conn) peek(n int) ([]byte, error) {
	if c.r.Buffered() >= n {
		return c.r.Peek(n)
	}
	b, err := c.r.Peek(n)
	c.at = agora.Ticks()
	return b, err
}

// take reads n bytes; they stay where they are while the buffer can hold them.
func (c *Conn) take(n int) ([]byte, error) {
	if n <= c.r.Size() {
		b, err := c.peek(n)
		_, _ = c.r.Discard(len(b)) // was peeked at
		return b, err
	}
	if cap(c.long) < n {
		c.long = make([]byte, n)
	}
	_, err := io.ReadFull(c.r, c.long[:n])
	c.at = agora.Ticks()
	return c.long[:n], err
}

// Close ends the session in order: nobody waits for the agent to return. It does not wait for the edge's answer.
func (c *Conn) Close() error {
	_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second)) // the edge may read nothing any more
	_ = c.Write(appendFrame(nil, opClose, []byte{1000 >> 8, 1000 & 0xff}))
	return c.nc.Close()
}

// Cut breaks the connection without a word, as a machine that fails does: the session stays.
func (c *Conn) Cut() error {
	nc := c.nc
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn() // the other one says goodbye
	}
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // a reset; a socket that is closed already needs none
	}
	return nc.Close()
}

// unblock has a read or write that blocks return when ctx ends, until the function that it returns is called.
func (c *Conn) unblock(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.nc.SetDeadline(time.Unix(1, 0)) })
}
