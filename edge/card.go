package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
)

// card is the card of a session's agent. It takes next to nothing where the agent says no more than its id, as most do.
type card struct {
	registered int64        // when its session began, in Unix nanoseconds; 0 where that is not known
	said       *agora.Agent // what it said of itself, not to be changed; nil for nothing but its id and dialect
	dialect    string       // in which it said nothing more; empty for Agora's own
}

func cardOf(a agora.Agent) card {
	var c card
	if !a.RegisteredAt.IsZero() {
		c.registered = a.RegisteredAt.UnixNano()
	}
	c.dialect = a.Dialect
	if !a.Bare() {
		c.said = &a
	}
	return c
}

// of returns the card as that of an agent.
func (c card) of(id agora.AgentID) agora.Agent {
	if c.said != nil {
		return *c.said
	}
	return agora.Agent{ID: id, Name: string(id), Dialect: c.dialect, RegisteredAt: c.since()}
}

// since is when the session began; zero where that is not known.
func (c card) since() time.Time {
	if c.registered == 0 {
		return time.Time{}
	}
	return time.Unix(0, c.registered)
}

// held is the bytes that the edge keeps for what the agent said.
func (c card) held() int64 {
	if c.said == nil {
		return 0
	}
	return int64(c.said.Size())
}

// keep has the session keep a card. The caller holds mu, or is alone with the session.
func (s *Session) keep(c card) {
	s.node.stats.cards.Add(c.held() - s.card.held())
	s.card = c
}

// letCardGo is for a session that is over and detached.
func (s *Session) letCardGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(card{})
}

// setCard has the directory show another card of the session's agent, and tells of it where it is another one.
func (s *Session) setCard(ctx context.Context, card agora.Agent) error {
	changed, err := s.node.cfg.Presence.Directory.SetCard(ctx, s.claim, card)
	if changed {
		s.node.owner.Announce(s.claim, agora.Updated)
	}
	return err
}
