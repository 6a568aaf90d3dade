package ws

import (
	"cmp"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/internal/pump"
	"github.com/agora-relay/agora/wire"
)

// overflow is how many times the bound of answers may be queued before the
// connection is given up. Answers can't come to that, as the socket is read no
// further at one; notices of what is under way could, if the peer took nothing.
const overflow = 4

// outbox is the half of a connection that writes: what is to be written, and the writer that does. The connection's mu guards its fields.
type outbox struct {
	*conn
	pending *buffer.Buffer // frames to write before any delivery; nil when there are none
	taken   int            // bytes that the writer has in hand
	queued  int64          // frames that were queued beside deliveries
	room    *sync.Cond     // on mu: the writer took what was queued, or stopped; nil while nobody has waited
	retry   *pump.Retry
	sizes   *sizes // of frames; nil where nothing was said of them, and none was large
	woken   bool   // a pull may have something
	writing bool   // a writer runs
	waiting bool   // a pull failed, and is tried again in a moment
	beside  beside
	balked  bool // the peer has closed the connection as a frame was larger than it takes
}

// Wake is called by the session when Pull has something.
func (c *conn) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life != opened {
		return
	}
	c.out.woken, c.out.waiting = true, false
	c.out.start()
}

// queue appends a frame behind what is queued.
func (o *outbox) queue(f *wire.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queueLocked(f)
}

func (o *outbox) queueLocked(f *wire.Frame) {
	if !o.open() {
		return
	}
	at := len(o.pending.B)
	o.queued++
	b := frame.Begin(o.pending.B)
	begin := len(b)
	if b = f.Append(b); len(b)-begin > o.takes() {
		instead := f.Refuse(errTooLarge)
		b = instead.Append(b[:begin])
	}
	o.pending.B = frame.End(b, at, frame.Text)
	o.door.stats.FramesOut.Add(1)
}

// errTooLarge is told in the place of an answer that the peer does not take.
var errTooLarge = agora.Errorf(agora.MessageTooLarge, "the answer is larger than a frame that this connection takes")

// sizes are what a connection knows of the sizes of frames.
type sizes struct {
	most    int        // bytes of a frame that the peer takes, as it has said; 0 where it has not
	largest int        // bytes of the largest delivery so far: the writing goroutine's, as the next
	at      edge.Place // where that stands
}

// limit sets how large a frame may be that the peer is sent, as it has said; 0 where it has not. It returns what holds: limits.frame at most.
func (o *outbox) limit(most int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if most > 0 {
		o.sizes = &sizes{most: min(most, o.door.node.frame)}
	}
	return o.takes()
}

// frameSize returns how large a frame may be that the peer is sent.
func (o *outbox) frameSize() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.takes()
}

// takes returns how large a frame may be that the peer is sent. mu is held.
func (o *outbox) takes() int {
	if o.sizes == nil {
		return o.door.node.frame
	}
	return cmp.Or(o.sizes.most, o.door.node.frame)
}

// large notes a large delivery, where it is the largest.
func (o *outbox) large(size int, d *edge.Delivery) {
	if o.sizes == nil {
		o.mu.Lock()
		o.sizes = new(sizes)
		o.mu.Unlock()
	}
	if size > o.sizes.largest {
		o.sizes.largest, o.sizes.at = size, d.Place()
	}
}

// queueInTurn queues a frame once the peer has taken enough of what is queued. It must not be called by a verb.
func (o *outbox) queueInTurn(f *wire.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.crammed() {
		o.wait()
	}
	o.queueLocked(f)
}

// crammed tells whether so much is queued that the peer is to take some of it first. mu is held.
func (o *outbox) crammed() bool {
	return o.pending != nil && len(o.pending.B) > o.door.cfg.Answers && o.life == opened
}

// control queues a control frame.
func (o *outbox) control(op frame.Op, payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open() {
		o.pending.B = frame.AppendControl(o.pending.B, op, payload)
	}
}

// wait waits until the writer took what was queued, or stopped. mu is held, and free meanwhile.
func (o *outbox) wait() {
	if o.room == nil {
		o.room = sync.NewCond(&o.mu)
	}
	o.room.Wait()
}

// roomy tells those who wait that the writer took what was queued, or stopped. mu is held.
func (o *outbox) roomy() {
	if o.room != nil {
		o.room.Broadcast()
	}
}

// open makes room for a frame and lets a writer run; false when nothing may be
// queued any more. mu is held.
func (o *outbox) open() bool {
	if o.life != opened {
		return false
	}
	if o.pending == nil {
		o.pending = buffer.Get()
	}
	if len(o.pending.B) > overflow*o.door.cfg.Answers {
		o.because(edge.Stalled, 0)
		o.shutLocked()
		o.kill()
		return false
	}
	o.start()
	return true
}

// Close says why, and closes: nothing is queued or pulled behind it. What is
// queued has until the linger to be taken, and the peer to answer.
func (c *conn) Close(r edge.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.because(r.Cause, closeCode(r))
	if r.Code != "" {
		c.door.stats.fault(r.Code)
		c.out.queueLocked(&wire.Frame{Type: "error", Code: string(r.Code), Message: r.Text})
	}
	c.closeLocked(closeCode(r), r.Text)
}

// turnOut closes for an error that the agent was told.
func (c *conn) turnOut(e *agora.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	code, _ := closeOf(e.Code)
	c.because(edge.Refused, code)
	c.closeLocked(code, e.Message)
}

func (c *conn) closeLocked(code int, text string) {
	if c.out.open() {
		c.out.pending.B = frame.AppendClose(c.out.pending.B, code, text)
		c.shutLocked()
	}
}

// answerClose answers the peer's close frame, and notes whether it was a goodbye.
func (c *conn) answerClose(code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life == opened {
		c.out.balked = code == frame.CloseTooBig
		c.goodbye = code == frame.CloseNormal || code == frame.CloseAway || code == frame.CloseNoStatus
		if c.goodbye {
			c.because(edge.Goodbye, code)
		} else {
			c.because(edge.Lost, code)
		}
	}
	c.closeLocked(code, "")
}

// condemn says how the peer broke the protocol, and closes.
func (c *conn) condemn(b frame.Breach) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.because(edge.Refused, b.Code)
	c.closeLocked(b.Code, b.Text)
}

// flood counts errors within a window.
type flood struct {
	since int64 // ticks
	n     int
}

const floodWindow = 10 * time.Second

// fault queues an error's frame; too many of them in a short time end the
// connection. Those that only say "later" are not held against it.
func (c *conn) fault(f *wire.Frame, e *agora.Error) {
	c.door.stats.fault(e.Code)
	c.door.refusals.Note(e, c.attrs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.queueLocked(f)
	switch e.Code {
	case agora.Unavailable, agora.Timeout, agora.RateLimited:
		return
	}
	if now := agora.Ticks(); c.faults.n == 0 || time.Duration(now-c.faults.since) > floodWindow {
		c.faults = flood{since: now}
	}
	if c.faults.n++; c.faults.n > c.door.cfg.MaxErrors {
		c.because(edge.Refused, frame.ClosePolicy)
		c.closeLocked(frame.ClosePolicy, "too many errors")
	}
}
