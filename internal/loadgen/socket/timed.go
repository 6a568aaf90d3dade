package socket

import (
	"net"
	"sync/atomic"

	"github.com/agora-relay/agora"
)

// Timed is a connection that knows when the bytes that it read last had come. One goroutine reads.
type Timed struct {
	net.Conn
	at atomic.Int64 // in Ticks
}

// Read implements net.Conn.
func (t *Timed) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.at.Store(agora.Ticks())
	return n, err
}

// At returns when the last read returned, in [agora.Ticks]. Frames that came together share their time.
func (t *Timed) At() int64 { return t.at.Load() }

// Send writes whole frames. It blocks while the server reads no further.
func (t *Timed) Send(frames []byte) error {
	_, err := t.Write(frames)
	return err
}
