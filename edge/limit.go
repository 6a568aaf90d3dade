package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// meter counts what one connection's agent says against its rates.
type meter struct{ messages, bytes bucket }

// spend takes a message from the sender's rate, and from its tenant's. Parts of
// an open stream wait for it, so that the socket is read no faster; everything
// else is refused over it.
func (s *Session) spend(ctx context.Context, m *agora.Message) error {
	if err := s.spare(ctx, m); err != nil {
		return err
	}
	a, n := s.actor, len(m.Body)
	var err error
	if m.Part == agora.Chunk || m.Part.Ends() {
		err = s.await(ctx, a.reserve(n))
	} else {
		err = a.spend(n)
	}
	if err == nil {
		a.tenant.Messages.Add(1)
		a.tenant.Bytes.Add(int64(n))
	}
	return err
}

// reserve takes a message of n bytes whatever is left, and returns how long it must wait.
func (a *Actor) reserve(n int) time.Duration {
	l, size := a.node.limits.load(), float64(n)
	own := max(a.meter.messages.take(l.messages, 1, true), a.meter.bytes.take(l.bytes, size, true))
	shared := max(a.tenant.messages.take(l.tenantMessages, 1, true), a.tenant.bytes.take(l.tenantBytes, size, true))
	if shared > 0 {
		a.tenant.Limited.Add(1)
	}
	return max(own, shared)
}

// spend takes a message of n bytes, or nothing where one of the buckets lacks it: RATE_LIMITED.
func (a *Actor) spend(n int) error {
	l, size := a.node.limits.load(), float64(n)
	after := a.meter.messages.take(l.messages, 1, false)
	if after > 0 {
		return tooFast("too much in too short a time", after)
	}
	if after = a.meter.bytes.take(l.bytes, size, false); after > 0 {
		a.meter.messages.give(l.messages, 1)
		return tooFast("too much in too short a time", after)
	}
	if after = a.tenant.messages.take(l.tenantMessages, 1, false); after == 0 {
		if after = a.tenant.bytes.take(l.tenantBytes, size, false); after == 0 {
			return nil
		}
		a.tenant.messages.give(l.tenantMessages, 1)
	}
	a.meter.messages.give(l.messages, 1)
	a.meter.bytes.give(l.bytes, size)
	a.tenant.Limited.Add(1)
	return tooFast("the agents of this tenant say too much in too short a time", after)
}

// tooFast is RATE_LIMITED, until some time has passed.
func tooFast(why string, after time.Duration) error {
	return &agora.Error{Code: agora.RateLimited, Message: why, RetryAfter: max(after, time.Millisecond)}
}

// await has the socket read no further for a while.
func (s *Session) await(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	s.blocked.Store(true)
	defer s.blocked.Store(false)
	if !pause.For(ctx, d) {
		return agora.AsError(ctx.Err())
	}
	return nil
}

// slowed is how long a part of a stream waits while its sender is shed.
const slowed = 200 * time.Millisecond

// spare gives the edge a rest while it holds too much and this connection is
// one of those that are shed: its one-shots and events are refused, its
// streams read slower.
func (s *Session) spare(ctx context.Context, m *agora.Message) error {
	seat := s.seat
	if !seat.Shed() {
		return nil
	}
	switch m.Part {
	case agora.Whole:
		seat.crowd.count.Messages.Add(1)
		return errBusy
	case agora.Start, agora.Chunk:
		seat.crowd.count.Slowed.Add(1)
		return s.await(ctx, slowed)
	}
	return nil // what ends a stream lets go of something
}
