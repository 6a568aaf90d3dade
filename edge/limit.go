package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/pause"
)

// limiters are what an edge takes: the limits in force, and what enforces them.
type limiters struct {
	*admission.LiveLimits
	Entrance
	rates *admission.RateLimiter
}

// newLimiters returns the limiters that settings ask for. shed is what the edge's shedder looks at and does.
func newLimiters(cfg Config, shed admission.ShedderConfig, authenticate func(context.Context, Credentials) (*Actor, error)) limiters {
	live := admission.NewLiveLimits(cfg.Limits)
	shed.Connections, shed.Queued = cfg.Limits.Connections, cfg.Limits.Queued
	return limiters{
		LiveLimits: live, rates: admission.NewRateLimiter(live, cfg.Presence, cfg.Answer),
		Entrance: Entrance{Connections: admission.NewConnLimiter(live), Shedder: admission.NewShedder(shed), Authenticate: authenticate},
	}
}

// checkCard returns INVALID_REQUEST, with the place, where a card is not as it may be.
func (l *limiters) checkCard(a *agora.Agent) error { return a.Check(l.Load().Card) }

// SetLimits puts other limits in force, for sessions that run too. An agent that is beyond one already keeps
// what it has. Frame, InFlight, Connections and Queued stay as they were at the start.
func (n *Node) SetLimits(l admission.Limits) {
	n.limits.Set(l)
	n.limits.Connections.Refill()
	n.limits.rates.Refill()
	for _, s := range n.sessions.all() {
		s.actor.quota.Refill()
	}
}

// Limits returns the limits in force, defaults filled in.
func (n *Node) Limits() admission.Limits { return n.limits.Load().Limits }

// ConnLimiter returns the limiter of all connections to the edge.
func (n *Node) ConnLimiter() *admission.ConnLimiter { return n.limits.Connections }

// Tenants returns the counters of each tenant that has been at this edge, by
// its name; those beyond the first [admission.CountedTenants] share one entry. They go on counting.
func (n *Node) Tenants() map[string]*admission.TenantStats { return n.limits.rates.Tenants() }

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
