package edge

import "github.com/agora-relay/agora/presence"

// held is the session as presence is to have it again, should it have lost it: what it would ask for now, and what it has.
func (s *Session) held() presence.Held {
	return presence.Held{
		Claim: s.claim,
		Request: presence.ClaimRequest{
			Tenant: s.claim.Tenant, Agent: s.claim.Agent, Principal: s.actor.Principal().Name, Holder: s.node.Holder(),
			Conn: s.name, Session: s.claim.Session, Token: s.token, Resume: s.cameBy, Card: s.profile.now().of(s.claim.Agent), Dial: s.node.dials.of(s),
		},
		Position: s.position(), Spaces: s.cursor.spacePositions(), Lanes: s.out.used(),
		Away: s.life.away(s.node.cfg.Presence.Grace()),
	}
}

// position returns how far the agent is with its mailbox, for its next edge. The cursor goes no further than senders were told: should this edge
// end before it could tell them, the next one does.
func (s *Session) position() presence.Position {
	tail, at := s.mailbox.inbox.Tail() // before what was given of it
	p := s.cursor.position()           // before what of it was told
	p.Tail, p.TailAt = tail, at
	if low := s.owed.Load().lowestUntold(); low > 0 {
		p.Cursor = min(p.Cursor, low-1)
	}
	return p
}

// positionChanges returns the positions to be written behind: of the spaces only
// those that moved since the last call.
func (s *Session) positionChanges() presence.Moved {
	s.cursor.unwritten.Store(false) // before they are read: what moves now moves again
	return presence.Moved{Claim: s.claim, Position: s.position(), Spaces: s.cursor.spacesMoved()}
}

// markMoved has the positions written behind.
func (s *Session) markMoved() {
	if !s.cursor.unwritten.Swap(true) {
		s.node.sessions.markMoved(s)
	}
}
