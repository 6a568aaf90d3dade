package edge

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/agora-relay/agora"
)

// limiter is an agent's rate limits; nil buckets limit nothing.
type limiter struct {
	messages, bytes *rate.Limiter
}

func newLimiter(l Limits) limiter {
	var lim limiter
	if l.Rate > 0 {
		lim.messages = rate.NewLimiter(rate.Limit(l.Rate), max(1, int(l.Rate*l.Burst)))
	}
	if l.Bytes > 0 {
		// A bucket must hold a whole frame, or none could ever pass.
		lim.bytes = rate.NewLimiter(rate.Limit(l.Bytes), max(l.Frame, int(l.Bytes*l.Burst)))
	}
	return lim
}

// spend takes a message from the sender's rate. Parts of an open stream wait
// for it, so that the socket is read no faster; everything else is refused
// over it.
func (s *Session) spend(ctx context.Context, m *agora.Message) error {
	if err := s.spare(ctx, m); err != nil {
		return err
	}
	if s.limit == (limiter{}) {
		return nil
	}
	wait := m.Part == agora.Chunk || m.Part.Ends()
	if err := s.take(ctx, s.limit.messages, 1, wait); err != nil {
		return err
	}
	return s.take(ctx, s.limit.bytes, len(m.Body), wait)
}

func (s *Session) take(ctx context.Context, bucket *rate.Limiter, n int, wait bool) error {
	if bucket == nil {
		return nil
	}
	if wait && bucket.AllowN(time.Now(), n) {
		return nil
	}
	if wait {
		s.blocked.Store(true)
		defer s.blocked.Store(false)
		if err := bucket.WaitN(ctx, min(n, bucket.Burst())); err != nil {
			return agora.AsError(err)
		}
		return nil
	}
	r := bucket.ReserveN(time.Now(), min(n, bucket.Burst()))
	after := r.Delay()
	if after == 0 {
		return nil
	}
	r.Cancel()
	return &agora.Error{Code: agora.RateLimited, Message: "too much in too short a time", RetryAfter: after}
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
		s.blocked.Store(true)
		defer s.blocked.Store(false)
		if !pause(ctx, slowed) {
			return agora.AsError(ctx.Err())
		}
	}
	return nil // what ends a stream lets go of something
}
