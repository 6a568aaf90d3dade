package edge

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
)

// limiters are what an edge takes: the limits in force, and what enforces them.
type limiters struct {
	*admission.LiveLimits
	conns   *admission.ConnLimiter
	rates   *admission.RateLimiter
	shedder *admission.Shedder
}

// newLimiters returns the limiters that settings ask for. shed is what the edge's shedder looks at and does.
func newLimiters(cfg Config, shed admission.ShedderConfig) limiters {
	live := admission.NewLiveLimits(cfg.Limits)
	shed.Connections, shed.Queued = cfg.Limits.Connections, cfg.Limits.Queued
	return limiters{live, admission.NewConnLimiter(live), admission.NewRateLimiter(live, cfg.Presence, cfg.Answer), admission.NewShedder(shed)}
}

// checkCard returns INVALID_REQUEST, with the place, where a card is not as it may be.
func (l *limiters) checkCard(a *agora.Agent) error { return a.Check(l.Load().Card) }

// SetLimits puts other limits in force, for sessions that run too. An agent that is beyond one already keeps
// what it has. Frame, InFlight, Connections and Queued stay as they were at the start.
func (n *Node) SetLimits(l admission.Limits) {
	n.limits.Set(l)
	n.limits.conns.Refill()
	n.limits.rates.Refill()
	for _, s := range n.sessions.all() {
		s.actor.quota.Refill()
	}
}

// Limits returns the limits in force, defaults filled in.
func (n *Node) Limits() admission.Limits { return n.limits.Load().Limits }

// ConnLimiter returns the limiter of all connections to the edge.
func (n *Node) ConnLimiter() *admission.ConnLimiter { return n.limits.conns }

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
