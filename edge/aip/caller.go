package aip

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
)

// caller is who makes a call that was let in. It is the connection of the call's admission, and the account of its messages.
type caller struct {
	actor     *edge.Actor
	admission edge.Admission
	usage     *admission.Usage
	owner     admission.Owner
	ctx       context.Context // of the call
	stop      context.CancelCauseFunc
	interrupt context.CancelFunc // has a read that waits return
	watches   bool               // the call only watches, and is made again elsewhere: guarded by the mu of activeCalls
	many      bool               // it may send several messages

	reading  atomic.Bool  // the reader waits for a message, or nothing more is to come
	coming   atomic.Int64 // ticks when the message began that is not whole; 0 for none
	messages atomic.Int64 // that have come whole
	kept     atomic.Int64 // bytes of its messages that are kept
	sampled  int64        // the shedder's own: how many messages there were at the last sample

	mu    sync.Mutex // guards the fields below
	taken int64      // of kept, counted by usage
	left  bool       // the call is over
}

// messageTime is how long a message may take from its first byte to its last.
const messageTime = 20 * time.Second

// ownedMessage is how many bytes of messages a call may keep that its owner's share of all unfinished requests does not count: those of a small message have come together.
const ownedMessage = 16 << 10

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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return errGone
	}
	kept := c.kept.Load() + int64(n)
	if kept > ownedMessage {
		if err := c.usage.Take(admission.RequestBytes, c.owner, kept-c.taken); err != nil {
			return err
		}
		c.taken = kept
	}
	c.kept.Store(kept)
	c.admission.MarkActive()
	return nil
}

// free implements account.
func (c *caller) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freeLocked()
}

func (c *caller) freeLocked() {
	if c.taken > 0 {
		c.usage.Give(admission.RequestBytes, c.owner, c.taken)
	}
	c.taken = 0
	c.kept.Store(0)
}

// over says that the call is over: nothing is kept for it any more.
func (c *caller) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	c.freeLocked()
}

// Held implements admission.Sheddable. Of a call whose messages are not read on, as its callee reads slowly, as much may have come as gRPC's window has.
func (c *caller) Held() (int64, bool) {
	kept, messages := c.kept.Load(), c.messages.Load()
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

// end ends the call, whose caller is told why.
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
	} else if since := c.coming.Load(); since != 0 && now-since > int64(messageTime) {
		c.end(errSlowMessage)
	}
}

var errSlowMessage = agora.Errorf(agora.Timeout, "the message did not come in time")
