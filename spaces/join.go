package spaces

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// maxHistory bounds Where.History.
const maxHistory = 4096

// Joined is the answer to a join.
type Joined struct {
	Members []agora.AgentID // the joiner included
	Seq     uint64          // position after which events follow
}

// Join makes the session a member (or finds that it is one: the roster is not
// told again) and opens its place. wake is called, never blocking and from any
// goroutine, when Next has something; what came before the caller has the
// place in hand, Unheard tells. wake must not call the place, nor take a lock
// that is held while the place is called. Errors: INVALID_REQUEST (name),
// SPACE_NOT_FOUND, SPACE_FULL, UNAVAILABLE. After UNAVAILABLE the membership may stand: a second Join answers it.
//
// Where a member begins that names no position is its own roster's place in
// the log: what members and later rosters say begins there too, so
// nothing is told in both or in neither.
func (h *Hub) Join(ctx context.Context, c presence.Claim, space string, w Where, wake func()) (*Place, Joined, error) {
	typ, err := Type(space)
	if err != nil {
		return nil, Joined{}, err
	}
	to := agora.ToSpace(c.Tenant, space)
	// The place comes first: it gathers while the answer is made, so that a
	// busy space does not send each newcomer into the log.
	p := h.place(to, c.Agent, wake)
	joined, err := h.join(ctx, c, typ, p, w)
	if err != nil {
		p.Close()
		return nil, Joined{}, fault(space, err)
	}
	return p, joined, nil
}

// join makes the membership and begins the place.
func (h *Hub) join(ctx context.Context, c presence.Claim, typ string, p *Place, w Where) (Joined, error) {
	to := p.fan.to
	m, err := h.cfg.Presence.Spaces.Join(ctx, c, to.Space, typ, typ == System || !h.cfg.NoCreate && !w.NoCreate)
	if err != nil {
		return Joined{}, err
	}
	own := ownVersion(c.Agent, m)
	end, err := h.announce(ctx, to, m.Pending, own)
	if err != nil {
		h.cfg.Log.Warn("roster not told yet", "space", to.Space, "agent", c.Agent, "err", err)
	}
	members := m.Members
	if end == 0 {
		// The roster has no known place: the log's end takes its part. Members
		// are read after it, so that no roster before it is newer than they are.
		if end, err = h.cfg.Broker.Last(ctx, to); err != nil {
			return Joined{}, err
		}
		if members, err = h.cfg.Presence.Spaces.Members(ctx, c.Tenant, to.Space); err != nil {
			return Joined{}, err
		}
	}
	end = wholeRecord(end)
	p.told.known, p.told.version = end, own
	if w.HasLast {
		place, err := h.cfg.Broker.Place(ctx, to, w.Last, 0)
		if err != nil {
			return Joined{}, err
		}
		if place != broker.Own {
			w.HasLast, w.Lost = false, true
		}
	}
	from, ok := w.from()
	if !ok {
		from = broker.From{After: end}
		if w.History > 0 {
			if from.After, err = h.back(ctx, to, min(w.History, maxHistory), end); err != nil {
				return Joined{}, err
			}
		}
	}
	p.told.marked = w.Marked
	p.begin(from, true, !ok)
	return Joined{Members: members, Seq: from.After}, nil
}

// ownVersion returns the version of the change by which the agent joined, 0
// when it was a member already.
func ownVersion(self agora.AgentID, m presence.Membership) (version uint64) {
	if !m.Changed {
		return 0
	}
	for _, c := range m.Pending {
		if c.Joined == self {
			version = c.Version
		}
	}
	return version
}

// back returns the position that n events lie behind, up to end; from the
// start of what is kept when there are fewer. Plain events and starts of streams count. It
// is one that a message has, so that it is known to be no gap.
func (h *Hub) back(ctx context.Context, to agora.Address, n int, end uint64) (uint64, error) {
	inbox := h.cfg.Broker.Listen(to, broker.From{}, func() {})
	defer inbox.Close()
	before := make([]uint64, n) // a ring of the positions before the last n events
	count, last := 0, uint64(0)
	for last < end {
		ms, err := inbox.Next(ctx, pull)
		if err != nil {
			return 0, err
		}
		if len(ms) == 0 {
			break
		}
		for _, m := range ms {
			if m.Seq <= end && m.Kind == agora.Event && m.Part <= agora.Start {
				before[count%n] = last
				count++
			}
			last = m.Seq
		}
	}
	switch {
	case count == 0:
		return end, nil
	case count < n:
		return before[0], nil
	}
	return before[count%n], nil
}

// Leave ends the membership and tells the others; a place that is open is closed by its owner. SPACE_NOT_FOUND where
// the space does not exist; no error for a non-member. After UNAVAILABLE the membership may have ended without the
// others knowing: a second Leave tells them, and so does the next change; it stays in presence.Record.Leaving until
// they are told.
func (h *Hub) Leave(ctx context.Context, c presence.Claim, space string) error {
	if _, err := Type(space); err != nil {
		return err
	}
	m, err := h.cfg.Presence.Spaces.Leave(ctx, c, space)
	if space == StatusSpace && isMissing(err) {
		return nil
	}
	if err != nil {
		return fault(space, err)
	}
	if _, err = h.announce(ctx, agora.ToSpace(c.Tenant, space), m.Pending, 0); err == nil {
		err = h.cfg.Presence.Spaces.Left(ctx, c, space)
	}
	return fault(space, err)
}
