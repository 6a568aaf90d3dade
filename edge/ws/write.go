package ws

import (
	"errors"
	"os"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
)

const (
	pullBytes = 64 << 10 // about what one pull may bring, while the edge holds little: its frames fit a buffer of the pool
	leastPull = 8 << 10  // the same, however much it holds
	piece     = 64 << 10 // what one write may take: each has a deadline of its own
	stalling  = 10 * time.Millisecond
	minRetry  = 100 * time.Millisecond
	maxRetry  = 2 * time.Second
)

// start lets a writer run. mu is held, and the reading goroutine waits for it.
func (c *conn) start() {
	if !c.writing {
		c.writing = true
		c.MarkActive()
		c.door.writers.start(c)
	}
}

// write writes what there is to write, in one round for a writer that counts, which comes again where there is more. One that has had
// to wait, and does not count any more, goes on until there is nothing.
func (c *conn) write(w *writer) (more bool) {
	for c.round(w) {
		if w.counts {
			return true
		}
	}
	c.settle(w.waits)
	return false
}

// round writes what is queued, and what a pull brings. It returns false once the writing has ended.
func (c *conn) round(w *writer) (more bool) {
	out, s := c.take()
	if out != nil && !c.send(out, w) {
		return false
	}
	if s != nil {
		// What is queued has gone out already: a pull may wait for the log.
		if out = c.pull(s, w); out != nil && !c.send(out, w) {
			return false
		}
		s.Written()
	}
	return !c.done()
}

// take returns what is queued, and the session when a pull may have something.
func (c *conn) take() (out *buffer, s *edge.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, c.pending, c.out = c.pending, nil, 0
	if out != nil {
		c.out = cap(out.b)
	}
	if c.woken && !c.closing {
		c.woken = false
		s = c.session.Load()
	}
	c.roomy()
	return out, s
}

// done notes that what was taken is written. The writing has ended, and done returns true, where there is nothing else.
func (c *conn) done() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = 0
	if c.pending != nil || c.woken && !c.closing {
		return false
	}
	c.writing = false
	c.restLocked()
	c.roomy()
	return true
}

// pull takes deliveries from the session, and what was queued meanwhile; nil
// when there is nothing.
func (c *conn) pull(s *edge.Session, w *writer) *buffer {
	out := getBuffer()
	ds, err := s.Pull(c.context(), max(pullBytes*c.Share()/admission.FullShare, leastPull), w.waits)
	c.mu.Lock()
	if !c.closing { // nothing follows a close frame
		// A join may have been answered before the pull began: its events come behind the answer.
		c.takePending(out)
	}
	c.mu.Unlock()
	for i := range ds {
		c.learns(&ds[i])
		out.b = appendDelivery(out.b, &ds[i])
	}
	s.Queued()
	c.door.stats.FramesOut.Add(int64(len(ds)))
	c.traffic.framesOut += int64(len(ds))

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.again(err)
	case len(ds) > 0:
		c.woken, c.backoff = true, 0
	default:
		c.backoff = 0
	}
	c.takePending(out)
	if len(out.b) == 0 {
		putBuffer(out)
		return nil
	}
	c.out = cap(out.b) + len(out.b) // the session keeps what was pulled until it is written
	return out
}

// takePending moves what is queued to the end of out. mu is held.
func (c *conn) takePending(out *buffer) {
	if c.pending != nil {
		out.b = append(out.b, c.pending.b...)
		putBuffer(c.pending)
		c.pending = nil
	}
}

// again has the session pulled once more in a moment. mu is held.
func (c *conn) again(err error) {
	if c.closing {
		return
	}
	c.waiting = true
	c.backoff = min(max(2*c.backoff, minRetry), maxRetry)
	if c.retry == nil {
		c.retry = time.AfterFunc(c.backoff, c.Wake)
	} else {
		c.retry.Reset(c.backoff)
	}
	c.door.cfg.Log.Debug("pull failed", "conn", c.name, "retry", c.backoff, "err", err)
}

// send writes out and returns it to the pool: most often the socket takes it at once, else piece by piece. On failure the
// connection is over, and so is the writing.
func (c *conn) send(out *buffer, w *writer) bool {
	defer putBuffer(out)
	n := w.attempt.on(c.socket, out.b)
	if n > 0 {
		c.wrote(n)
	}
	if n < len(out.b) {
		w.waits()
		return c.sendPieces(out.b[n:])
	}
	return true
}

// sendPieces writes b piece by piece, as the socket takes it.
func (c *conn) sendPieces(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), piece)
		begin := time.Now()
		c.socket.SetWriteDeadline(begin.Add(c.door.node.timeout))
		if _, err := c.socket.Write(b[:n]); err != nil {
			c.fail(err)
			return false
		}
		// What the system takes at once proves nothing, as it may only fill its
		// buffers; having had to wait for room does.
		if n == piece && time.Since(begin) > stalling {
			c.alive()
		}
		b = b[n:]
		c.wrote(n)
	}
	return true
}

// wrote counts a write of n bytes.
func (c *conn) wrote(n int) {
	c.door.stats.Writes.Add(1)
	c.door.stats.BytesOut.Add(int64(n))
	c.traffic.bytesOut += int64(n)
}

// fail ends a connection whose socket takes nothing.
func (c *conn) fail(err error) {
	why := edge.Lost
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.door.stats.Stalled.Add(1)
		why = edge.Stalled
	}
	c.kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.because(why, 0)
	c.shutLocked()
	c.writing = false
	c.roomy()
}
