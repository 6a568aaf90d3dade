package simnet

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Inlet is one way of a connection within a process: what is written is kept until it is read, without a goroutine of
// its own. Writers wait only where there is no room.
type Inlet struct {
	mu      sync.Mutex // guards the fields below
	changed sync.Cond  // on mu
	b       []byte
	read    int  // how much of b was
	closed  bool // nothing more is written
	gone    bool // nobody reads any more
	reading time.Time
	writing time.Time
}

// NewInlet returns an inlet that is open.
func NewInlet() *Inlet {
	i := new(Inlet)
	i.changed.L = &i.mu
	return i
}

// Write takes p.
func (i *Inlet) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	err := i.await(&i.writing, func() bool { return i.closed || i.gone || len(i.b)-i.read <= room })
	switch {
	case i.gone:
		return 0, io.ErrClosedPipe
	case i.closed:
		return 0, net.ErrClosed
	case err != nil:
		return 0, err
	}
	if i.read == len(i.b) {
		i.b, i.read = i.b[:0], 0
	}
	i.b = append(i.b, p...)
	i.changed.Broadcast()
	return len(p), nil
}

// Read reads what was written, and what was before Close also after it.
func (i *Inlet) Read(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	err := i.await(&i.reading, func() bool { return i.closed || i.gone || i.read < len(i.b) })
	switch {
	case i.gone:
		return 0, io.ErrClosedPipe
	case err != nil:
		return 0, err
	case i.read == len(i.b):
		return 0, io.EOF
	}
	n := copy(p, i.b[i.read:])
	if i.read += n; len(i.b)-i.read <= room {
		i.changed.Broadcast()
	}
	return n, nil
}

// await waits until something is so, or until a deadline. mu is held.
func (i *Inlet) await(deadline *time.Time, so func() bool) error {
	for !so() {
		if deadline.IsZero() {
			i.changed.Wait()
			continue
		}
		left := time.Until(*deadline)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		late := time.AfterFunc(left, i.changed.Broadcast)
		i.changed.Wait()
		late.Stop()
	}
	return nil
}

// Close is the writer's end. What is kept can still be read.
func (i *Inlet) Close() { i.set(func() { i.closed = true }) }

// Leave is the reader's end. What is kept is lost.
func (i *Inlet) Leave() { i.set(func() { i.gone, i.b, i.read = true, nil, 0 }) }

// SetReadDeadline sets the deadline of reading.
func (i *Inlet) SetReadDeadline(t time.Time) { i.set(func() { i.reading = t }) }

// SetWriteDeadline sets the deadline of writing.
func (i *Inlet) SetWriteDeadline(t time.Time) { i.set(func() { i.writing = t }) }

func (i *Inlet) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
	i.changed.Broadcast()
}
