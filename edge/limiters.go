package edge

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/presence"
)

// limiters are what an edge takes: the limits in force, and what enforces them.
type limiters struct {
	*admission.LiveLimits
	Entrance
	rates *admission.RateLimiter
	usage *admission.Usage
}

// newLimiters returns the limiters that settings ask for. shed is what the edge's shedder looks at and does.
func newLimiters(cfg Config, shed admission.ShedderConfig, authenticate func(context.Context, Credentials) (*Actor, error)) limiters {
	shed.Connections, shed.Queued, shed.Shared = cfg.Limits.Connections, cfg.Limits.Queued, cfg.Proxies.Trust
	shedder := admission.NewShedder(shed)
	cfg.Limits.Connections, _ = shedder.Limits()
	live := admission.NewLiveLimits(cfg.Limits)
	return limiters{
		LiveLimits: live, rates: admission.NewRateLimiter(live, cfg.Presence, cfg.Answer), usage: admission.NewUsage(live),
		Entrance: Entrance{Connections: admission.NewConnLimiter(live), Shedder: shedder, Authenticate: authenticate},
	}
}

// cards returns how much agents may say of themselves, in all of the cluster.
func (l *limiters) cards() presence.CardBounds {
	limits := l.Load()
	bound := func(r admission.Resource) presence.CardBound {
		b := limits.Bound(r)
		return presence.CardBound{Principal: b.Principal, Whole: b.Whole}
	}
	return presence.CardBounds{
		Registrations: bound(admission.Registrations), Bytes: bound(admission.CardBytes), Tenant: admission.TenantShare, Own: admission.PrincipalShare,
	}
}

// checkCard returns INVALID_REQUEST, with the place, where a card is not as it may be.
func (l *limiters) checkCard(a *agora.Agent) error { return a.Check(l.Load().Card) }
