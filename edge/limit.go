package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// CountTogether has what the actor says count with all that is said so for its principal at this edge: that of requests, each of which has an
// actor of its own. Principals without a name are nobody in particular. It is called before the actor says anything.
func (a *Actor) CountTogether() {
	if p := a.Principal(); p != nil && p.Name != "" {
		a.quota.CountTogether(agora.ToAgent(p.Tenant, agora.AgentID(reserved+p.Name)))
	}
}

// as is the address of an agent in whose name the actor speaks.
func (a *Actor) as(id agora.AgentID) agora.Address { return agora.ToAgent(a.Principal().Tenant, id) }

// spend takes a message from the sender's rate, and from its tenant's. Parts of
// an open stream wait for it, so that the socket is read no faster; everything
// else is refused over it. While the edge sheds the connection, it takes less.
func (s *Session) spend(ctx context.Context, m *agora.Message) error {
	wait, err := s.slot.Throttle(m.Part)
	if err == nil {
		err = s.await(ctx, wait)
	}
	if err != nil {
		return err
	}
	q, n := &s.actor.quota, len(m.Body)
	if m.Part == agora.Chunk || m.Part.Ends() {
		err = s.await(ctx, q.Reserve(n))
	} else {
		err = q.Spend(n)
	}
	if err == nil {
		q.Count(n)
	}
	return err
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
