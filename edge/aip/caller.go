package aip

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
)

// caller is who makes a call that was let in. It is the connection of the call's admission, and the account of its
// messages.
type caller struct {
	actor     *edge.Actor
	admission edge.Admission
	kept      admission.Kept  // of its messages
	ctx       context.Context // of the call
	stop      context.CancelCauseFunc
	interrupt context.CancelFunc // has a read that waits return
	watches   bool               // the call only watches, and is made again elsewhere: guarded by the mu of activeCalls
	many      bool               // it may send several messages

	reading  atomic.Bool  // the reader waits for a message, or nothing more is to come
	coming   atomic.Int64 // ticks when the message began that is not whole; 0 for none
	messages atomic.Int64 // that have come whole
	sampled  int64        // the shedder's own: how many messages there were at the last sample
}

// messageTime is how long a message may take from its first byte to its last.
const messageTime = 20 * time.Second

// begin implements account.
func (c *caller) begin() error {
	c.reading.Store(true) // before the context is asked: who ends it later sees that there is a reader
	return cause(c.ctx)
}

// come implements account.
func (c *caller) come() { c.coming.CompareAndSwap(0, agora.Ticks()) }

// whole implements account.
func (c *caller) whole() {
	c.coming.Store(0)
	c.messages.Add(1)
	c.reading.Store(false)
}

// complete implements account.
func (c *caller) complete() { c.coming.Store(0) }

// hold implements account. RATE_LIMITED where the owner of the call holds as much of unfinished requests as it may.
func (c *caller) hold(n int) error {
	err := c.kept.Hold(n)
	if err == nil {
		c.admission.MarkActive()
	}
	return err
}

// free implements account.
func (c *caller) free() { c.kept.Free() }

// Held implements admission.Sheddable. Of a call whose messages are not read on, as its callee reads slowly, as much
// may have come as gRPC's window has.
func (c *caller) Held() (int64, bool) {
	kept, messages := c.kept.Bytes(), c.messages.Load()
	stalled := c.many && !c.reading.Load() && messages == c.sampled
	c.sampled = messages
	if stalled {
		return kept + streamWindow, true
	}
	return kept, false
}

// Shed implements admission.Sheddable.
func (c *caller) Shed() {
	c.end(&agora.Error{Code: agora.Unavailable, Message: edge.Overloaded.Text, RetryAfter: time.Second})
}

// end ends the call, whose caller learns why.
func (c *caller) end(why error) {
	c.stop(why)
	if c.reading.Load() {
		c.interrupt()
	}
}

// check ends the call where its credentials are not good any more, or its message does not come in time.
func (c *caller) check(now int64) {
	if err := c.actor.Check(); err != nil {
		c.end(err)
	} else if c.late(now) {
		c.end(errSlowMessage)
	}
}

// late reports whether a message has been coming for too long.
func (c *caller) late(now int64) bool {
	since := c.coming.Load()
	return since != 0 && now-since > int64(messageTime)
}

var errSlowMessage = agora.Errorf(agora.Timeout, "the message did not come in time")
