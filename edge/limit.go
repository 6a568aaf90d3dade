package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

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
func (a *Actor) reserve(n int) time.Duration { return a.reserveFrom(a.own(), n) }

func (a *Actor) reserveFrom(m *meter, n int) time.Duration {
	l, size := a.node.limits.load(), float64(n)
	own := max(m.messages.take(l.messages, 1, true), m.bytes.take(l.bytes, size, true))
	shared := max(a.tenant.messages.take(l.tenantMessages, 1, true), a.tenant.bytes.take(l.tenantBytes, size, true))
	if shared > 0 {
		a.tenant.Limited.Add(1)
	}
	return max(own, shared)
}

// own returns the meter of what the actor's connection says.
func (a *Actor) own() *meter {
	if m := a.meter.Load(); m != nil {
		return m
	}
	a.meter.CompareAndSwap(nil, new(meter))
	return a.meter.Load()
}

// CountTogether has what the actor says count with all that is said so for its principal at this edge: that of requests, each of which has an
// actor of its own. Principals without a name are nobody in particular. It is called before the actor says anything.
func (a *Actor) CountTogether() {
	if who := a.Principal(); who != nil && who.Name != "" {
		a.meter.Store(a.node.meters.get(agora.ToAgent(who.Tenant, agora.AgentID(reserved+who.Name))))
	}
}

// spend takes a message of n bytes, or nothing where one of the buckets lacks it: RATE_LIMITED.
func (a *Actor) spend(n int) error { return a.spendFrom(a.own(), n) }

// spendAs is spend for what is said as an agent, but not by its connection: it counts with all that the agent says so at all edges, and with what it says at this one
// while presence can't count that.
func (a *Actor) spendAs(ctx context.Context, as agora.AgentID, n int) error {
	node, at := a.node, agora.ToAgent(a.Principal().Tenant, as)
	l, m := node.limits.load(), node.meters.get(at)
	if l.messages.rate <= 0 && l.bytes.rate <= 0 {
		return a.spendShared(l, n)
	}
	after, ok := m.allowance.take(ctx, node, at, l, n)
	if !ok {
		return a.spendFrom(m, n)
	}
	if after > 0 {
		return tooFast("too much in too short a time", after)
	}
	err := a.spendShared(l, n)
	if err != nil {
		m.allowance.give(l, n)
	}
	return err
}

func (a *Actor) spendFrom(m *meter, n int) error {
	l, size := a.node.limits.load(), float64(n)
	after := m.messages.take(l.messages, 1, false)
	if after > 0 {
		return tooFast("too much in too short a time", after)
	}
	if after = m.bytes.take(l.bytes, size, false); after > 0 {
		m.messages.give(l.messages, 1)
		return tooFast("too much in too short a time", after)
	}
	err := a.spendShared(l, n)
	if err != nil {
		m.messages.give(l.messages, 1)
		m.bytes.give(l.bytes, size)
	}
	return err
}

// spendShared takes a message of n bytes from what the agents of the tenant may say at this edge.
func (a *Actor) spendShared(l *live, n int) error {
	after := a.tenant.messages.take(l.tenantMessages, 1, false)
	if after == 0 {
		if after = a.tenant.bytes.take(l.tenantBytes, float64(n), false); after == 0 {
			return nil
		}
		a.tenant.messages.give(l.tenantMessages, 1)
	}
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
	s.blocked.begin()
	defer s.blocked.end()
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
