package edge

import (
	"context"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
)

// Session is an agent's live connection. The door calls Pull, Queued and Written from its one
// writing goroutine; everything else may be called from anywhere. What one
// goroutine says is stored in its order.
type Session struct {
	binding
	inbound
	profile   profile
	out       outgoing
	departure departure
}

// Update replaces the card of the running session: a second registration of
// the same id. heartbeat reports whether the agent knows agent.heartbeat now.
func (s *Session) Update(ctx context.Context, card agora.Agent, heartbeat bool) error {
	if err := errors.Join(s.actor.quota.Spend(0), s.node.limits.checkCard(&card)); err != nil {
		return agora.AsError(err)
	}
	card.RegisteredAt = s.profile.now().since()
	if err := s.setCard(ctx, card); err != nil {
		return agora.AsError(err)
	}
	if !s.life.ended() {
		s.node.limits.usage.Add(admission.Bytes, s.owner(), s.profile.keep(cardOf(card)))
	}
	if heartbeat {
		s.keepalive.heartbeat.Store(true)
	}
	return nil
}
