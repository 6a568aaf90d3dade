// Package simnet has connections within a process that keep what is written, as the buffers of an operating system do.
package simnet

import (
	"net"
	"os"
	"sync"
	"time"
)

// room is how many bytes are kept for a peer that does not read.
const room = 1 << 20

// Buffered is a connection whose writers do not wait for the peer, as long as there is room.
type Buffered struct {
	net.Conn
	carrying sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	changed  sync.Cond  // on mu
	b        []byte
	closed   bool
	failed   error
	deadline time.Time
}

// Buffer returns c with a buffer. The caller owes a call of Close, after which what is under way still arrives, unless
// the peer has gone.
func Buffer(c net.Conn) *Buffered {
	b := &Buffered{Conn: c}
	b.changed.L = &b.mu
	b.carrying.Go(b.carry)
	return b
}

// Write takes p, and waits only where there is no room.
func (b *Buffered) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.b) > room && !b.deadline.IsZero() {
		defer time.AfterFunc(time.Until(b.deadline), b.changed.Broadcast).Stop()
	}
	for len(b.b) > room && b.failed == nil && !b.closed {
		if !b.deadline.IsZero() && !time.Now().Before(b.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		b.changed.Wait()
	}
	if b.failed != nil {
		return 0, b.failed
	}
	if b.closed {
		return 0, net.ErrClosed
	}
	b.b = append(b.b, p...)
	b.changed.Broadcast()
	return len(p), nil
}

func (b *Buffered) carry() {
	var out []byte
	for {
		b.mu.Lock()
		for len(b.b) == 0 && !b.closed {
			b.changed.Wait()
		}
		out, b.b = b.b, out[:0]
		b.changed.Broadcast()
		b.mu.Unlock()
		if len(out) == 0 {
			break
		}
		if _, err := b.Conn.Write(out); err != nil {
			b.mu.Lock()
			b.failed, b.b = err, nil
			b.changed.Broadcast()
			b.mu.Unlock()
			break
		}
	}
	b.Conn.Close()
}

// Close closes the connection.
func (b *Buffered) Close() error {
	b.mu.Lock()
	b.closed = true
	b.changed.Broadcast()
	b.mu.Unlock()
	return b.Conn.SetReadDeadline(time.Unix(1, 0))
}

// Wait returns once nothing is under way any more and the connection itself is closed: after Close, or when the peer
// has gone.
func (b *Buffered) Wait() { b.carrying.Wait() }

// SetDeadline sets the deadlines of reading and writing.
func (b *Buffered) SetDeadline(t time.Time) error {
	_ = b.SetWriteDeadline(t)
	return b.Conn.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of writing.
func (b *Buffered) SetWriteDeadline(t time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deadline = t
	b.changed.Broadcast()
	return nil
}
