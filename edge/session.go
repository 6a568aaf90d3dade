package edge

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Conn is a door's connection as its session sees it. No method blocks; all
// may be called from any goroutine, also after the connection has gone.
type Conn interface {
	Wake()         // Pull has something
	Notify(Notice) // write this behind what is queued
	Close(Reason)  // write what is queued, if the socket takes it, then close
}

// Reason says why the node closes a connection. A door says it in words of its protocol.
type Reason struct {
	Cause Cause
	Code  agora.Code // of the error that the agent is told before; empty for none
	Text  string     // one sentence for the agent
}

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
	unwritten atomic.Bool // stands among those whose positions are to be written
}

// Agent returns the id that the session is bound to.
func (s *Session) Agent() agora.AgentID { return s.claim.Agent }

// ID returns the id of the session, which stays when the agent returns in time.
func (s *Session) ID() string { return s.claim.Session }

// Conn returns the id of its connection.
func (s *Session) Conn() string { return s.name }

// Actor returns who the session acts for.
func (s *Session) Actor() *Actor { return s.actor }

// Begin lets deliveries flow: the door has queued its answer to the Hello.
func (s *Session) Begin() {
	s.keepalive.beaten = agora.Ticks()
	s.mailbox.begun.Store(true)
	keeper{s}.rearm(false, 0)
	s.conn.Wake()
}

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
		s.node.stats.cards.Add(s.profile.keep(cardOf(card)))
	}
	if heartbeat {
		s.profile.heartbeat.Store(true)
	}
	return nil
}

// held is the session as presence is to have it again, should it have lost it: what it would ask for now, and what it has.
func (s *Session) held() presence.Held {
	return presence.Held{
		Claim: s.claim,
		Request: presence.ClaimRequest{
			Tenant: s.claim.Tenant, Agent: s.claim.Agent, Principal: s.actor.Principal().Name, Holder: s.node.Holder(),
			Conn: s.name, Session: s.claim.Session, Token: s.token, Card: s.profile.now().of(s.claim.Agent), Dial: s.node.dials.of(s),
		},
		Position: s.position(), Spaces: s.cursor.spacePositions(), Lanes: s.out.used(),
		Away: s.life.away(s.node.cfg.Presence.Grace()),
	}
}

// position returns how far the agent is with its mailbox.
func (s *Session) position() presence.Position {
	tail, at := s.mailbox.inbox.Tail() // before what was given of it
	p := s.cursor.position()
	p.Tail, p.TailAt = tail, at
	return p
}

// positionTold is position, but that its cursor goes no further than senders were told: should this edge end before it could tell them, the
// agent's next one does.
func (s *Session) positionTold() presence.Position {
	p := s.position()
	if low := s.owed.Load().lowestUntold(); low > 0 {
		p.Cursor = min(p.Cursor, low-1)
	}
	return p
}

// positionChanges returns the positions to be written behind: of the spaces only
// those that moved since the last call.
func (s *Session) positionChanges() presence.Moved {
	s.unwritten.Store(false) // before they are read: what moves now moves again
	return presence.Moved{Claim: s.claim, Position: s.positionTold(), Spaces: s.cursor.spacesMoved()}
}

// markMoved has the positions written behind.
func (s *Session) markMoved() {
	if !s.unwritten.Swap(true) {
		s.node.sessions.markMoved(s)
	}
}

// put puts a value into a map, which it makes where there is none.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
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
