package ws

import (
	"encoding/binary"
	"net"
	"sync"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/internal/buffer"
)

// ping asks the peer for a sign of life, and gives one where a heartbeat is due with it. Where nothing else is to be written, as
// of most connections most of the time, it goes out from the caller's goroutine, which does not wait for room. So
// a tick of the wheel that pings hundreds of quiet agents starts no writer for each, with a stack that grows and a buffer of its own.
func (o *outbox) ping(n edge.Notice) {
	if _, direct := o.socket.(*net.TCPConn); !direct || !o.seize() {
		o.control(frame.Ping, binary.BigEndian.AppendUint64(nil, n.Data))
		if !n.At.IsZero() {
			f := heartbeat(n.At)
			o.queue(&f)
		}
		return
	}
	s := signs.Get().(*sign)
	defer signs.Put(s)
	s.frames = frame.AppendControl(s.frames[:0], frame.Ping, binary.BigEndian.AppendUint64(s.data[:0], n.Data))
	if !n.At.IsZero() {
		at, f := len(s.frames), heartbeat(n.At)
		s.frames = frame.End(f.Append(frame.Begin(s.frames)), at, frame.Text)
		o.door.stats.FramesOut.Add(1)
	}
	taken := s.attempt.on(o.socket, s.frames)
	o.door.stats.Writes.Add(1)
	o.door.stats.BytesOut.Add(int64(taken))
	o.traffic.bytesOut += int64(taken)
	o.release(s.frames[taken:], !n.At.IsZero())
}

// seize makes the caller the writer of a connection that has none, and nothing to write.
func (o *outbox) seize() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.life != opened || o.writing || o.pending != nil {
		return false
	}
	o.writing = true
	return true
}

// release ends what seize began, of which frame tells whether a frame was part. A writer takes over where something came up
// meanwhile, or where the socket did not take all: what is left goes first.
func (o *outbox) release(left []byte, frame bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if frame {
		o.queued++
	}
	if len(left) > 0 {
		b := buffer.Get()
		b.B = append(b.B, left...)
		o.takePending(b)
		o.pending = b
	}
	if o.pending != nil || o.woken || o.life != opened {
		o.MarkActive()
		o.door.writers.start(o.conn)
		return
	}
	o.writing, o.resting = false, true
	o.restLocked()
	o.roomy()
}

// sign is what giving one sign of life takes.
type sign struct {
	attempt *attempt
	frames  []byte
	data    [8]byte
}

var signs = sync.Pool{New: func() any { return &sign{attempt: newAttempt()} }}
