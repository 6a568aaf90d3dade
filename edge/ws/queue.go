package ws

import (
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/wire"
)

// overflow is how many times the bound of answers may be queued before the
// connection is given up. Answers can't come to that, as the socket is read no
// further at one; notices of what is under way could, if the peer took nothing.
const overflow = 4

// Wake is called by the session when Pull has something.
func (c *conn) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return
	}
	c.woken, c.waiting = true, false
	c.start()
}

// queue appends a frame behind what is queued.
func (c *conn) queue(f *wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queueLocked(f)
}

func (c *conn) queueLocked(f *wire.Frame) {
	if !c.open() {
		return
	}
	at := len(c.pending.b)
	c.queued++
	c.pending.b = endFrame(f.Append(beginFrame(c.pending.b)), at, opText)
	c.door.stats.FramesOut.Add(1)
}

// queueInTurn queues a frame once the peer has taken enough of what is queued. It must not be called by a verb.
func (c *conn) queueInTurn(f *wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.crammed() {
		c.waitLocked()
	}
	c.queueLocked(f)
}

// crammed tells whether so much is queued that the peer is to take some of it first. mu is held.
func (c *conn) crammed() bool {
	return c.pending != nil && len(c.pending.b) > c.door.cfg.Answers && !c.closing
}

// control queues a control frame.
func (c *conn) control(op opcode, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open() {
		c.pending.b = appendControl(c.pending.b, op, payload)
	}
}

// open makes room for a frame and lets a writer run; false when nothing may be
// queued any more. mu is held.
func (c *conn) open() bool {
	if c.closing {
		return false
	}
	if c.pending == nil {
		c.pending = getBuffer()
	}
	if len(c.pending.b) > overflow*c.door.cfg.Answers {
		c.because(edge.Stalled, 0)
		c.shutLocked()
		c.kill()
		return false
	}
	c.start()
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
		c.queueLocked(&wire.Frame{Type: "error", Code: string(r.Code), Message: r.Text})
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
	if c.open() {
		c.pending.b = appendClose(c.pending.b, code, text)
		c.shutLocked()
	}
}

// answerClose answers the peer's close frame, and notes whether it was a goodbye.
func (c *conn) answerClose(code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.goodbye = code == closeNormal || code == closeAway || code == closeNoStatus
		if c.goodbye {
			c.because(edge.Goodbye, code)
		} else {
			c.because(edge.Lost, code)
		}
	}
	c.closeLocked(code, "")
}

// condemn says how the peer broke the protocol, and closes.
func (c *conn) condemn(b breach) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
	c.because(edge.Refused, b.code)
	c.closeLocked(b.code, b.text)
}

// flood counts errors within a window.
type flood struct {
	since int64 // ticks
	n     int
}

const floodWindow = 10 * time.Second

// fault queues an error frame; too many of them in a short time end the
// connection. Those that only say "later" are not held against it.
func (c *conn) fault(f *wire.Frame) {
	c.door.stats.fault(agora.Code(f.Code))
	c.door.refusals.Note(agora.Code(f.Code), f.Message, c.attrs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queueLocked(f)
	switch agora.Code(f.Code) {
	case agora.Unavailable, agora.Timeout, agora.RateLimited:
		return
	}
	if now := agora.Ticks(); c.faults.n == 0 || time.Duration(now-c.faults.since) > floodWindow {
		c.faults = flood{since: now}
	}
	if c.faults.n++; c.faults.n > c.door.cfg.MaxErrors {
		c.because(edge.Refused, closePolicy)
		c.closeLocked(closePolicy, "too many errors")
	}
}
