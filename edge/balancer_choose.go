package edge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// candidates are the sessions of an edge that may be moved, the ones that have been here longest first.
type candidates struct{ fresh, returned group } // returned: they were moved from here before, and have come back

// group is sessions of which one after the other is to be moved.
type group struct{ unseen, busy []*Session }

// candidates returns whom to move. Where gently, none that was moved or has come not long ago is among them. Agents
// that an edge has dialled stay: they can't be told to go anywhere.
func (b *Balancer) candidates(gently bool) (c candidates) {
	now := b.node.cfg.Broker.Now()
	b.forget(now)
	all := b.node.sessions.all()
	slices.SortFunc(all, func(x, y *Session) int { return cmp.Compare(x.since, y.since) })
	for _, s := range all {
		switch {
		case s.claim.Dialled || !s.mailbox.begun.Load() || gently && now.UnixNano()-s.since < int64(b.node.cfg.Moving.Rest):
		case !b.wasMoved(s.address()):
			c.fresh.unseen = append(c.fresh.unseen, s)
		case !gently:
			c.returned.unseen = append(c.returned.unseen, s)
		}
	}
	return c
}

// len returns how many there are at most.
func (c *candidates) len() int { return len(c.fresh.unseen) + len(c.returned.unseen) }

// next takes the one to move next; nil where none is left.
func (c *candidates) next() *Session {
	if s := c.fresh.next(); s != nil {
		return s
	}
	return c.returned.next()
}

// next takes one that has nothing under way at the moment; where all have, the one that was seen first.
func (g *group) next() *Session {
	for len(g.unseen) > 0 {
		s := g.unseen[0]
		g.unseen = g.unseen[1:]
		switch {
		case s.life.ended():
		case s.idle():
			return s
		default:
			g.busy = append(g.busy, s)
		}
	}
	for len(g.busy) > 0 {
		s := g.busy[0]
		if g.busy = g.busy[1:]; !s.life.ended() {
			return s
		}
	}
	return nil
}

// remember notes that an agent is told to move.
func (b *Balancer) remember(at agora.Address) {
	b.mu.Lock()
	defer b.mu.Unlock()
	put(&b.moved, at, b.node.cfg.Broker.Now())
}

// wasMoved reports whether an agent was told to move, not long ago.
func (b *Balancer) wasMoved(at agora.Address) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, was := b.moved[at]
	return was
}

// forget drops those that were told to move long ago.
func (b *Balancer) forget(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.moved, func(_ agora.Address, told time.Time) bool { return now.Sub(told) >= remembered })
}

// idle reports whether a session has nothing under way: nothing unsent, unread or unconfirmed, and no stream that is
// open.
func (s *Session) idle() bool {
	confirmed, written, _ := s.cursor.mailbox()
	if s.out.held() > 0 || s.out.blocked.Load() > 0 || s.mailbox.inbox.Held() > 0 || confirmed < written {
		return false
	}
	return !slices.ContainsFunc(s.out.used(), func(l presence.Lane) bool { return len(l.Open) > 0 })
}
