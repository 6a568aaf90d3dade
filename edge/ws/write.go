package ws

import (
	"errors"
	"os"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/internal/pump"
	"github.com/agora-relay/agora/wire"
)

const (
	pullBytes = 64 << 10 // about what one pull may bring, while the edge holds little: its frames fit a buffer of the pool
	leastPull = 8 << 10  // the same, however much it holds
	piece     = 64 << 10 // what one write may take: each has a deadline of its own
	stalling  = 10 * time.Millisecond
	maxRetry  = 2 * time.Second
)

// start lets a writer run. mu is held, and the reading goroutine waits for it.
func (o *outbox) start() {
	if !o.writing {
		o.writing = true
		o.MarkActive()
		o.door.writers.start(o.conn)
	}
	o.startBeside()
}

// write writes what there is to write, in one round for a writer that counts, which comes again where there is more. One that has had
// to wait, and does not count any more, goes on until there is nothing.
func (o *outbox) write(w *writer) (more bool) {
	if o.wroteBeside(w) {
		return false
	}
	for o.round(w) {
		if w.counts {
			return true
		}
	}
	o.settle(w.waits)
	return false
}

// round writes what is queued, and what a pull brings. It returns false once the writing has ended.
func (o *outbox) round(w *writer) (more bool) {
	out, s := o.take()
	if out != nil && !o.send(out, w) {
		return o.failed()
	}
	if s != nil {
		// What is queued has gone out already: a pull may wait for the log.
		if out = o.pull(s, w); out != nil && !o.send(out, w) {
			return o.failed()
		}
		s.Written()
	}
	return !o.done()
}

// take returns what is queued, and the session when a pull may have something.
func (o *outbox) take() (out *buffer.Buffer, s *edge.Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out, o.pending, o.taken = o.pending, nil, 0
	if out != nil {
		o.taken = cap(out.B)
	}
	if o.woken && o.life == opened {
		o.woken = false
		s = o.session.Load()
	}
	o.roomy()
	return out, s
}

// done notes that what was taken is written. The writing has ended, and done returns true, where there is nothing else.
func (o *outbox) done() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = 0
	if o.pending != nil || o.woken && o.life == opened {
		return false
	}
	o.writing = false
	o.restLocked()
	o.roomy()
	return true
}

// pull takes deliveries from the session, and what was queued meanwhile; nil
// when there is nothing.
func (o *outbox) pull(s *edge.Session, w *writer) *buffer.Buffer {
	out := buffer.Get()
	ds, err := s.Pull(o.context(), max(pullBytes*o.Share()/admission.FullShare, leastPull), func() {
		w.waits()
		o.pullWaits()
	})
	o.mu.Lock()
	o.pullEnds()
	if o.life == opened { // nothing follows a close frame
		// A join may have been answered before the pull began: its events come behind the answer.
		o.takePending(out)
	}
	o.mu.Unlock()
	for i := range ds {
		o.verbs.learns(&ds[i])
		at := len(out.B)
		if out.B = appendDelivery(out.B, &ds[i]); len(out.B)-at > wire.MinMaxFrame { // smaller ones every client takes
			o.large(len(out.B)-at, &ds[i])
		}
	}
	s.Queued()
	o.door.stats.FramesOut.Add(int64(len(ds)))
	o.traffic.framesOut += int64(len(ds))

	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.again(err)
	case len(ds) > 0:
		o.woken = true
		o.retry.Over()
	default:
		o.retry.Over()
	}
	o.takePending(out)
	if len(out.B) == 0 {
		buffer.Put(out)
		return nil
	}
	o.taken = cap(out.B) + len(out.B) // the session keeps what was pulled until it is written
	return out
}

// takePending moves what is queued to the end of out. mu is held.
func (o *outbox) takePending(out *buffer.Buffer) {
	if o.pending != nil {
		out.B = append(out.B, o.pending.B...)
		buffer.Put(o.pending)
		o.pending = nil
	}
}

// again has the session pulled once more in a moment. mu is held.
func (o *outbox) again(err error) {
	if o.life != opened {
		return
	}
	o.waiting = true
	if o.retry == nil {
		o.retry = &pump.Retry{Longest: maxRetry}
	}
	pause := o.retry.Again(o.Wake)
	o.door.cfg.Log.Debug("pull failed", "conn", o.name(), "retry", pause, "err", err)
}

// send writes out and returns it to the pool: most often the socket takes it at once, else piece by piece. On failure the
// connection is over.
func (o *outbox) send(out *buffer.Buffer, w *writer) bool {
	defer buffer.Put(out)
	n := w.attempt.on(o.socket, out.B)
	if n > 0 {
		o.wrote(n)
	}
	if n < len(out.B) {
		w.waits()
		return o.sendPieces(out.B[n:])
	}
	return true
}

// sendPieces writes b piece by piece, as the socket takes it.
func (o *outbox) sendPieces(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), piece)
		begin := time.Now()
		o.socket.SetWriteDeadline(begin.Add(o.door.node.timeout))
		if _, err := o.socket.Write(b[:n]); err != nil {
			o.fail(err)
			return false
		}
		// What the system takes at once proves nothing, as it may only fill its
		// buffers; having had to wait for room does.
		if n == piece && time.Since(begin) > stalling {
			o.alive()
		}
		b = b[n:]
		o.wrote(n)
	}
	return true
}

// wrote counts a write of n bytes.
func (o *outbox) wrote(n int) {
	o.door.stats.Writes.Add(1)
	o.door.stats.BytesOut.Add(int64(n))
	o.traffic.bytesOut += int64(n)
}

// failed ends the writing of a connection that failed, and returns false.
func (o *outbox) failed() (more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = false
	o.roomy()
	return false
}

// fail ends a connection whose socket takes nothing.
func (o *outbox) fail(err error) {
	why := edge.Lost
	if errors.Is(err, os.ErrDeadlineExceeded) {
		o.door.stats.Stalled.Add(1)
		why = edge.Stalled
	}
	o.kill()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.because(why, 0)
	o.shutLocked()
}
