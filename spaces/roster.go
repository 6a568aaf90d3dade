package spaces

import (
	"context"
	"fmt"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// announceWithin bounds the time between learning of unpublished changes and
// the last publish of them. It is well below the duplicate window.
const announceWithin = 30 * time.Second

// remembered is how many of the changes published last a fan-out knows.
const remembered = 64

// announcer publishes the roster changes of one space, one caller at a time:
// of many who join at once each finds most of the changes before its own told.
type announcer struct {
	turn chan struct{} // holds one token while somebody publishes
	told []change      // the changes published last, by version; owned by who has the turn; nil before the first
}

type change struct{ version, seq uint64 }

func newAnnouncer() *announcer { return &announcer{turn: make(chan struct{}, 1)} }

// announce publishes changes that presence lists as not yet published, in the
// order of their versions, and then has presence take them off its list. It
// returns the position of the change with the version own, 0 when unknown.
//
// That each change is told once and in order, whoever joins where and dies
// when: a change is put on the list by the same script that changes the
// members, so none is forgotten, and every later change returns those before
// it that are still listed. Nobody publishes version v+1 before the log has
// acknowledged v. Two edges that publish the same v at the same time do so
// under one idempotency key, of which the log stores the first. A change is taken off the
// list only after it was stored; so an edge that dies, or can't reach the log,
// leaves it to the next one. Who learned of a change long ago, when its key
// may be out of the log's duplicate window, does not publish it: it gives up
// after announceWithin, and so the membership stands while the list still
// has the change. A repetition that slips through all this (an edge died between the two
// steps, and the next change came after the window) carries its version, and
// a place drops versions that its member was told.
func (h *Hub) announce(ctx context.Context, to agora.Address, pending []presence.Change, own uint64) (uint64, error) {
	if len(pending) == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, announceWithin)
	defer cancel()
	a := newAnnouncer() // without a place here there is nobody to take turns with
	if f := h.fan(to); f != nil {
		a = f.roster
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting to tell the roster: %w", ctx.Err())
	}
	for _, c := range pending {
		if err := h.publishRoster(ctx, to, a, c); err != nil {
			return 0, err
		}
	}
	last := pending[len(pending)-1].Version
	return a.seq(own), h.cfg.Presence.Spaces.Announced(ctx, to.Tenant, to.Space, last)
}

// publishRoster stores one change, unless it is known to be stored.
func (h *Hub) publishRoster(ctx context.Context, to agora.Address, a *announcer, c presence.Change) error {
	if a.seq(c.Version) != 0 {
		return nil
	}
	key := fmt.Sprintf("roster/%s/%s/%d", agora.EncodeToken(to.Tenant), agora.EncodeToken(to.Space), c.Version)
	m := h.cfg.rosterBody(c).Message()
	m.N, m.To = c.Version, to
	seq, err := h.cfg.Broker.Publish(ctx, key, m)
	if err != nil {
		return fmt.Errorf("telling the roster: %w", err)
	}
	if a.told == nil {
		a.told = make([]change, remembered)
	}
	a.told[c.Version%remembered] = change{c.Version, seq}
	return nil
}

// seq returns the position of a change that was published here lately, or 0.
func (a *announcer) seq(version uint64) uint64 {
	if a.told == nil || version == 0 {
		return 0
	}
	if c := a.told[version%remembered]; c.version == version {
		return c.seq
	}
	return 0
}

// rosterBody is a change as it is told. Of more members than are to be named none is: told to
// all of them at every change, their names would cost the cube of their number, and be more than a frame.
func (c *Config) rosterBody(change presence.Change) agora.RosterBody {
	r := agora.RosterBody{Joined: change.Joined, Left: change.Left}
	size := 0
	for _, id := range change.Members {
		size += 2*len(id) + len(`"",`) // each byte of an id takes two at most
	}
	if len(change.Members) <= c.WholeRoster && size <= c.RosterBytes {
		r.Members = append([]agora.AgentID{}, change.Members...)
	}
	return r
}
