package edge

import (
	"context"
	"log/slog"
	"time"

	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// writeBehindLoop writes what need not be written at once: every second, positions
// with the third part of a lease. Losing one means repeating what was written since, marked.
func (n *Node) writeBehindLoop() {
	var flushed time.Time
	for pause.For(n.ctx, time.Second) {
		if now := time.Now(); now.Sub(flushed) >= n.cfg.Lease/3 {
			flushed = now
			n.sessions.flushPositions(n.ctx, n.cfg.Presence, n.cfg.Log)
		}
		n.relay.Tick(n.ctx)
		n.calls.Tick(n.ctx)
		n.sessions.detachLate(n.background)
	}
}

// flushPositions writes the positions of the sessions that moved, all in one batch.
func (t *sessionTable) flushPositions(ctx context.Context, p *presence.Store, log *slog.Logger) {
	moved := t.takeMoved()
	var batch []presence.Moved
	for i := range moved {
		batch = append(batch, i.positionChanges())
	}
	if len(batch) == 0 {
		return
	}
	if err := p.Positions.Write(ctx, batch); err != nil {
		// Losing a position means repeating, never skipping: the next move writes it.
		log.Warn("positions were not written", "err", err)
		for i := range moved {
			i.cursor.forgetPersisted()
			i.markMoved()
		}
	}
}

// detachLate tries again to detach the sessions that have stopped.
func (t *sessionTable) detachLate(background func(func())) {
	for _, s := range t.allStopped() {
		if s.departure.mu.TryLock() {
			s.departure.mu.Unlock()
			background(func() { s.departure.detachSoon(s) })
		}
	}
}

// held is the session as presence is to have it again, should it have lost it: what it would ask for now, and what it
// has.
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

// position returns how far the agent is with its mailbox, for its next edge. The cursor goes no further than senders
// were told: should this edge end before it could tell them, the next one does.
func (i *inbound) position() presence.Position {
	tail, at := i.mailbox.inbox.Tail() // before what was given of it
	p := i.cursor.position()           // before what of it was told
	p.Tail, p.TailAt = tail, at
	if low := i.owed.Load().lowestUntold(); low > 0 {
		p.Cursor = min(p.Cursor, low-1)
	}
	return p
}

// positionChanges returns the positions to be written behind: of the spaces only
// those that moved since the last call.
func (i *inbound) positionChanges() presence.Moved {
	i.cursor.unwritten.Store(false) // before they are read: what moves now moves again
	return presence.Moved{Claim: i.claim, Position: i.position(), Spaces: i.cursor.spacesMoved()}
}

// markMoved has the positions written behind.
func (i *inbound) markMoved() {
	if !i.cursor.unwritten.Swap(true) {
		i.node.sessions.markMoved(i)
	}
}
