package edge

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Hearer is a [Conn] that is told of signs of life which its agent gives in other ways than over the connection: see [Actor.Alive].
type Hearer interface {
	Conn
	Alive() // must not block
}

// doDialled does an act for who may speak for an agent that this edge has dialled.
func (a *act) doDialled(ctx context.Context, s *Session) error {
	switch {
	case !s.claim.Dialled:
		return agora.UnknownAgent(s.claim.Agent)
	case a.Principal != s.actor.Principal().Name:
		return notYours(s.claim.Agent)
	case a.Verb == verbUpdate:
		card, known := presence.UnpackCard(s.claim.Agent, a.Card, a.Detail)
		if !known {
			return agora.Errorf(agora.InvalidRequest, "an edge of another version asked for this")
		}
		return s.Update(ctx, card, false)
	}
	s.Alive()
	if h, is := s.conn.(Hearer); is {
		h.Alive()
	}
	return nil
}
