package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
)

// Drain empties the edge until ctx is over: it lets nobody in, tells its agents to reconnect, drain.rate of them a
// second so that the other edges are not stormed, closes them, flushes what is under way and gives the lease back. When
// there is not the time for that, it tells the rest at once, and to come back one after the other nevertheless. Nothing
// is lost by it and nothing ends: every session continues at another edge. Agents that the edge has dialled are dialled
// by others first (see [Adopter]), and closed here then. It is called once, and returns how it went.
func (n *Node) Drain(ctx context.Context) DrainResult {
	if !guard.Draining {
		return DrainResult{}
	}
	n.draining.Store(true)
	n.limits.Shedder.Shut(ownership.ErrDraining)
	d := newDrainer(ctx, n)
	for d.step() && pause.For(ctx, departEvery) {
		d.offers.close()
	}
	for len(n.sessions.all()) > 0 && pause.For(ctx, 20*time.Millisecond) {
		d.offers.close()
	}
	n.drained.Store(true)
	if ctx.Err() == nil {
		if err := n.cfg.Presence.Leases.Resign(ctx, n.owner.Holder()); err != nil {
			n.cfg.Log.Warn("lease was not given back", "err", err)
		}
	}
	return d.outcome()
}

// DrainResult is how a drain went.
type DrainResult struct {
	HandedOver int   // agents that were told to reconnect, and whose sessions other edges go on with
	Left       int   // agents whose sessions were not given away in time: other edges take them over, as after a crash
	Pending    int64 // bytes of those agents' messages that were not stored yet; they have no receipt
}

// outcome returns how it went.
func (d *drainer) outcome() (o DrainResult) {
	left := d.node.sessions.all()
	for _, s := range left {
		delete(d.told, s)
		if out := s.out.lanes.Load(); out != nil {
			o.Pending += int64(out.Held())
		}
	}
	o.HandedOver, o.Left = len(d.told), len(left)
	return o
}

const (
	departEvery = 100 * time.Millisecond // between two groups of agents that are told
	flushTime   = 5 * time.Second        // kept, or a quarter of the time there is, for what the last ones told have under way
)

// drainer is the way of an edge's agents to other edges. Each has a time at
// which it is expected there; those times are 1/drain.rate apart.
type drainer struct {
	node *Node
	last time.Time             // when the one who is left is told at once
	next time.Time             // when the next one is expected
	told map[*Session]struct{} // who was told, gone or not

	offers *offers // of those who can't be told
}

func newDrainer(ctx context.Context, n *Node) *drainer {
	now := time.Now()
	d := &drainer{node: n, last: now.AddDate(1, 0, 0), next: now, told: map[*Session]struct{}{}, offers: newOffers(ctx, n)}
	if end, ok := ctx.Deadline(); ok {
		d.last = end.Add(-min(flushTime, end.Sub(now)/4))
	}
	return d
}

// step tells the agents that are expected before the next step; false when
// everybody was told and nobody is about to come.
func (d *drainer) step() bool {
	left, now := d.left(), time.Now()
	if len(left) == 0 {
		return d.node.owner.Expects()
	}
	if d.next.Before(now) {
		d.next = now // a step that comes late does not make the group larger
	}
	n := 0
	for n < len(left) && d.slot(n).Before(now.Add(departEvery)) {
		n++
	}
	if n < len(left) && now.Add(departEvery).After(d.last) {
		d.node.cfg.Log.Warn("time runs short: the rest of the agents is told at once", "agents", len(left))
		n = len(left)
	}
	d.sendAway(left[:n], now)
	return true
}

// left returns those who were not told yet.
func (d *drainer) left() (left []*Session) {
	for _, s := range d.node.sessions.all() {
		if _, told := d.told[s]; !told && !s.life.ended() {
			left = append(left, s)
		}
	}
	return left
}

// slot is when the k-th from now is expected at another edge.
func (d *drainer) slot(k int) time.Time {
	return d.next.Add(time.Duration(k) * time.Second / time.Duration(d.node.cfg.Moving.Rate))
}

// sendAway tells a group to reconnect, each at its own time, and closes it. Nobody
// is told to stay away for longer than half the grace.
func (d *drainer) sendAway(group []*Session, now time.Time) {
	longest, most := d.slot(len(group)).Sub(now), d.node.cfg.Presence.Grace()/2
	for i, s := range group {
		d.told[s] = struct{}{}
		if s.claim.Dialled {
			d.offers.make(s, d.last)
			continue
		}
		after := d.slot(i).Sub(now)
		if longest > most {
			after = time.Duration(float64(after) * float64(most) / float64(longest))
		}
		s.conn.Notify(Notice{Kind: NoticeReconnect, After: after})
		s.conn.Close(Reason{Cause: Drained, Text: "the edge is restarting: reconnect"})
	}
	d.next = d.slot(len(group))
}
