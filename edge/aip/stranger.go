package aip

import (
	"context"

	"google.golang.org/grpc/tap"

	"github.com/agora-relay/agora/edge/admission"
)

// stranger is who makes a call that needs no credentials. It is the account of its message.
type stranger struct {
	*admission.Stranger
	ctx       context.Context
	stop      context.CancelCauseFunc
	interrupt context.CancelFunc
	kept      int
	waits     bool // its message is not complete
}

// stranger lets a stranger's call in: it has a place among strangers, and is ended when that is another one's.
func (i *interceptor) stranger(ctx context.Context) (context.Context, *stranger) {
	c := &stranger{interrupt: interruptOf(ctx), waits: true}
	from := i.from(ctx)
	c.ctx, c.stop = context.WithCancelCause(ctx)
	c.Stranger = i.node.Shedder().Strangers().Enter(from, c.evict)
	return c.ctx, c
}

// evict ends the call.
func (c *stranger) evict(why error) {
	c.stop(why)
	c.interrupt()
}

// leave says that the call is over.
func (c *stranger) leave() {
	c.complete()
	c.Leave()
	c.stop(nil)
}

// begin implements account.
func (c *stranger) begin() error { return c.Err() }

// come implements account.
func (c *stranger) come() {}

// whole implements account.
func (c *stranger) whole() {}

// complete implements account: the answer may last.
func (c *stranger) complete() {
	if c.waits {
		c.waits = false
		c.Stay()
		settled(c.ctx)
	}
}

// hold implements account.
func (c *stranger) hold(n int) error {
	c.kept += n
	return c.Hold(n)
}

// free implements account.
func (c *stranger) free() {
	c.Hold(-c.kept)
	c.kept = 0
}

// interruptKey finds what interrupts the reads of a call in its context.
type interruptKey struct{}

// arrive is asked of each call as soon as its header is there. Reads of its messages wait for the context that it
// returns, which can be ended here.
func (i *interceptor) arrive(ctx context.Context, call *tap.Info) (context.Context, error) {
	ctx, err := i.keepPagesOut(ctx, call)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx) // which ends with the call
	return context.WithValue(ctx, interruptKey{}, cancel), nil
}

// interruptOf returns what has reads of a call's messages return.
func interruptOf(ctx context.Context) context.CancelFunc {
	if cancel, is := ctx.Value(interruptKey{}).(context.CancelFunc); is {
		return cancel
	}
	return func() {}
}

// arrivals is the address of a connection that counts the calls over it whose callers are not known yet. What has come
// over it may be theirs.
type arrivals interface {
	Arrived() // a call has
	Settled() // it was let in or refused, or has its whole message
}

// arrived says that a call has arrived. The caller owes a call of settled.
func arrived(ctx context.Context) {
	if a, is := CallerAddr(ctx).(arrivals); is {
		a.Arrived()
	}
}

func settled(ctx context.Context) {
	if a, is := CallerAddr(ctx).(arrivals); is {
		a.Settled()
	}
}
