package ws

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/agora-relay/agora/edge"
)

// ping asks the peer for a sign of life, and gives one where a heartbeat is due with it. Where nothing else is to be written, as
// of most connections most of the time, it goes out from the caller's goroutine, which does not wait for room. So
// a tick of the wheel that pings hundreds of quiet agents starts no writer for each, with a stack that grows and a buffer of its own.
func (c *conn) ping(n edge.Notice) {
	socket, direct := c.socket.(*net.TCPConn)
	if !direct || !c.seize() {
		c.control(opPing, binary.BigEndian.AppendUint64(nil, n.Data))
		if !n.At.IsZero() {
			f := heartbeat(n.At)
			c.queue(&f)
		}
		return
	}
	a := attempts.Get().(*attempt)
	defer attempts.Put(a)
	a.frames = appendControl(a.frames[:0], opPing, binary.BigEndian.AppendUint64(a.data[:0], n.Data))
	if !n.At.IsZero() {
		at, f := len(a.frames), heartbeat(n.At)
		a.frames = endFrame(f.Append(beginFrame(a.frames)), at, opText)
		c.door.stats.FramesOut.Add(1)
	}
	taken := a.on(socket)
	c.door.stats.Writes.Add(1)
	c.door.stats.BytesOut.Add(int64(taken))
	c.traffic.bytesOut += int64(taken)
	c.release(a.frames[taken:], !n.At.IsZero())
}

// seize makes the caller the writer of a connection that has none, and nothing to write.
func (c *conn) seize() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing || c.writing || c.pending != nil {
		return false
	}
	c.writing = true
	return true
}

// release ends what seize began, of which frame tells whether a frame was part. A writer takes over where something came up
// meanwhile, or where the socket did not take all: what is left goes first.
func (c *conn) release(left []byte, frame bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if frame {
		c.queued++
	}
	if len(left) > 0 {
		b := getBuffer()
		b.b = append(b.b, left...)
		c.takePending(b)
		c.pending = b
	}
	if c.pending != nil || c.woken || c.closing {
		c.seat.Stir()
		c.door.writers.start(c)
		return
	}
	c.writing, c.resting = false, true
	c.restLocked()
	c.roomy()
}

// attempt writes to a socket as much as it takes at once.
type attempt struct {
	frames []byte
	data   [8]byte
	taken  int
	write  func(fd uintptr) (done bool)
}

var attempts = sync.Pool{New: func() any {
	a := new(attempt)
	a.write = func(fd uintptr) bool {
		a.taken = writeSome(fd, a.frames)
		return true
	}
	return a
}}

// on writes the frames and returns how many bytes the socket took. Why it took no more is for a writer to find out.
func (a *attempt) on(socket *net.TCPConn) int {
	a.taken = 0
	socket.SetWriteDeadline(time.Time{}) // that of an earlier write may be over
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Write(a.write) // an error leaves taken at 0
	}
	return a.taken
}
