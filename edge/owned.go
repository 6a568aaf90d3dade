package edge

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/presence"
)

// owned is a session as one that is held under a claim.
type owned struct{ *Session }

func (s owned) Claim() presence.Claim          { return s.claim }
func (s owned) Snapshot() presence.Held        { return s.held() }
func (s owned) Over() bool                     { return s.life.ended() }
func (s owned) Probe(ctx context.Context) bool { return s.probe(ctx) }
func (s owned) HandOver(ctx context.Context) (clean bool, err error) {
	return s.departure.handOver(ctx, s.Session)
}

// Depose gives nothing more to the session's connection, which is closed, as another edge holds the claim.
func (s owned) Depose() {
	s.cursor.close()
	s.deposed()
}

// Resume has the session deliver what was withheld from a Pull.
func (s owned) Resume() {
	if s.mailbox.refused.Swap(false) {
		s.conn.Wake()
	}
}

// LeaveAgain leaves those of some spaces once more that the session is not in any more, behind a verb that runs: it may
// be one that leaves.
func (s owned) LeaveAgain(spaces map[string]uint64) {
	if len(spaces) == 0 {
		return
	}
	if s.order.TryLock() {
		all := true
		for name := range spaces {
			p, _ := s.cursor.subscription(name)
			all = all && p != nil
		}
		s.order.Unlock()
		if all {
			return
		}
	}
	s.node.background(func() {
		for name := range spaces {
			s.tellLeft(name)
		}
	})
}

// Lose tells presence that the socket is gone.
func (s owned) Lose(ctx context.Context) error {
	return s.lose(ctx, s.position())
}

// ownedSessions are those of a table.
type ownedSessions struct{ *sessionTable }

func (t ownedSessions) All() []ownership.Session { return owns(t.all()) }
func (t ownedSessions) Agents() int              { return t.agents() }

func (t ownedSessions) Of(at agora.Address, before uint64) []ownership.Session {
	return owns(t.of(at, before))
}

func owns(all []*Session) []ownership.Session {
	held := make([]ownership.Session, len(all))
	for i, s := range all {
		held[i] = owned{s}
	}
	return held
}
