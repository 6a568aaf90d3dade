package ws

import (
	"errors"
	"os"
	"time"

	"github.com/agora-relay/agora/edge"
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
		c.seat.Stir()
		c.door.writers.start(c)
	}
}

// write writes while there is something to write.
func (c *conn) write() {
	defer c.settle()
	for {
		out, s := c.take()
		if out != nil && !c.send(out) {
			return
		}
		if s == nil && out == nil {
			return
		}
		if s == nil {
			continue
		}
		// What is queued has gone out already: a pull may wait for the log.
		if out = c.pull(s); out != nil && !c.send(out) {
			return
		}
		s.Written()
	}
}

// take returns what is queued, and the session when a pull may have something.
// When neither is the case the writer has ended.
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
	if out == nil && s == nil {
		c.writing = false
		c.restLocked()
	}
	c.roomy()
	return out, s
}

// pull takes deliveries from the session, and what was queued meanwhile; nil
// when there is nothing.
func (c *conn) pull(s *edge.Session) *buffer {
	out := getBuffer()
	c.order.Lock()
	ds, err := s.Pull(c.context(), max(pullBytes*c.door.node.crowd.Share()/edge.Whole, leastPull))
	c.mu.Lock()
	if !c.closing { // nothing follows a close frame
		// A join may have been answered before the pull began: its events come behind the answer.
		c.takePending(out)
	}
	c.mu.Unlock()
	for i := range ds {
		out.b = appendDelivery(out.b, &ds[i])
	}
	c.order.Unlock()
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

// send writes out piece by piece and returns it to the pool. On failure the
// connection is over, and so is the writer.
func (c *conn) send(out *buffer) bool {
	defer putBuffer(out)
	for b := out.b; len(b) > 0; {
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
		c.door.stats.Writes.Add(1)
		c.door.stats.BytesOut.Add(int64(n))
		c.traffic.bytesOut += int64(n)
	}
	return true
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
