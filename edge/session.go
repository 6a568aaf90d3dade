package edge

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
)

// Session is an agent's live connection. The door calls Pull, Queued and Written from its one
// writing goroutine; everything else may be called from anywhere. What one
// goroutine says is stored in its order.
type Session struct {
	binding
	life      lifecycle
	profile   profile
	out       outgoing
	rights    rights
	incoming  incoming
	aliases   aliases
	cursor    cursor
	owed      atomic.Pointer[receiptQueue] // receipts to be told to the senders of what this agent got; nil while there never was one
	mailbox   mailbox
	order     order
	keepalive keepalive
	departure departure
}

// Agent returns the id that the session is bound to.
func (s *Session) Agent() agora.AgentID { return s.claim.Agent }

// ID returns the id of the session, which stays when the agent returns in time.
func (s *Session) ID() string { return s.claim.Session }

// Conn returns the id of its connection.
func (s *Session) Conn() string { return s.name }

// Actor returns who the session acts for.
func (s *Session) Actor() *Actor { return s.actor }

// Update replaces the card of the running session: a second registration of
// the same id. heartbeat tells whether the agent knows agent.heartbeat now.
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
		s.profile.heartbeat.Store(true)
	}
	return nil
}

// usable returns an error when the session takes no verbs any more.
func (s *Session) usable() error {
	if _, ok := s.node.owner.Lease().Valid(); !ok {
		return &agora.Error{Code: agora.Unavailable, Message: "the edge has lost touch with the cluster", RetryAfter: time.Second}
	}
	if s.life.ended() {
		return agora.Errorf(agora.Unavailable, "the session is over here")
	}
	return nil
}
