package ws

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/agora-relay/agora/edge"
)

// ping asks the peer for a sign of life, and gives one where a heartbeat is due with it. Where nothing else is to be written, as
// of most connections most of the time, it goes out from the caller's goroutine, which does not wait for room. So
// a tick of the wheel that pings hundreds of quiet agents starts no writer for each, with a stack that grows and a buffer of its own.
func (c *conn) ping(n edge.Notice) {
	if _, direct := c.socket.(*net.TCPConn); !direct || !c.seize() {
		c.control(opPing, binary.BigEndian.AppendUint64(nil, n.Data))
		if !n.At.IsZero() {
			f := heartbeat(n.At)
			c.queue(&f)
		}
		return
	}
	s := signs.Get().(*sign)
	defer signs.Put(s)
	s.frames = appendControl(s.frames[:0], opPing, binary.BigEndian.AppendUint64(s.data[:0], n.Data))
	if !n.At.IsZero() {
		at, f := len(s.frames), heartbeat(n.At)
		s.frames = endFrame(f.Append(beginFrame(s.frames)), at, opText)
		c.door.stats.FramesOut.Add(1)
	}
	taken := s.attempt.on(c.socket, s.frames)
	c.door.stats.Writes.Add(1)
	c.door.stats.BytesOut.Add(int64(taken))
	c.traffic.bytesOut += int64(taken)
	c.release(s.frames[taken:], !n.At.IsZero())
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
		c.MarkActive()
		c.door.writers.start(c)
		return
	}
	c.writing, c.resting = false, true
	c.restLocked()
	c.roomy()
}

// sign is what giving one sign of life takes.
type sign struct {
	attempt *attempt
	frames  []byte
	data    [8]byte
}

var signs = sync.Pool{New: func() any { return &sign{attempt: newAttempt()} }}
