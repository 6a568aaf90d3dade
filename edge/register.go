package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Bounds of how long a registration without a connection may ask to last.
const (
	MinRegister = time.Minute
	MaxRegister = 24 * time.Hour
)

// Register registers an agent without a connection, or renews that: it is in the directory, and known, until lasts is
// over, which it returns; 0 stands for Config.Register. A session of the agent continues as it is. Errors:
// INVALID_REQUEST (the card, or lasts beyond MinRegister and MaxRegister), FORBIDDEN, RATE_LIMITED, AGENT_EXISTS where
// the id is another principal's, UNAVAILABLE.
func (a *Actor) Register(ctx context.Context, card agora.Agent, lasts time.Duration) (until time.Time, err error) {
	n, who := a.node, a.Principal()
	if lasts == 0 {
		lasts = n.cfg.Register
	} else if lasts < MinRegister || lasts > MaxRegister {
		return until, agora.Errorf(agora.InvalidRequest, "a registration lasts from %v to %v", MinRegister, MaxRegister)
	}
	for _, err := range []error{a.Check(), n.limits.checkCard(&card), a.mayBe(card.ID), a.quota.Spend(card.Size())} {
		if err != nil {
			return until, agora.AsError(err)
		}
	}
	r := presence.Registration{Tenant: who.Tenant, Principal: who.Name, Card: card}
	until = n.cfg.Broker.Now().Add(lasts)
	return until, n.owner.Register(ctx, r, lasts)
}

// Unregister ends a registration without a connection before its time, and what binds a peer to it; a session of the
// agent continues. AGENT_NOT_FOUND where there is none, AGENT_EXISTS where it is another principal's, FORBIDDEN,
// RATE_LIMITED, UNAVAILABLE.
func (a *Actor) Unregister(ctx context.Context, id agora.AgentID) error {
	n, who := a.node, a.Principal()
	for _, err := range []error{a.Check(), a.mayBe(id), a.quota.Spend(0)} {
		if err != nil {
			return agora.AsError(err)
		}
	}
	card, err := n.directory.Card(ctx, who.Tenant, id) // as it was: the peer that speaks as the agent does so no more
	if code(err) == agora.Unavailable {
		return err
	}
	withdrawn, err := n.owner.Withdraw(ctx, who.Tenant, who.Name, id)
	if err != nil {
		return err
	}
	if card.Peer != "" {
		if err := a.UnbindPeer(ctx, card.Peer, id); err != nil {
			return err
		}
	}
	return withdrawn.Finish(ctx)
}
