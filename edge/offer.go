package edge

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora/presence"
)

// offerTime is how long a drained edge keeps the connections that it has dialled for others to adopt their sessions
// meanwhile. What nobody has adopted by then is closed, and adopted later.
const offerTime = 5 * time.Second

// offers are the dialled sessions that a drained edge gives away: their agents can't be told to reconnect.
type offers struct {
	node   *Node
	others bool // some edge may adopt them
	open   map[*Session]time.Time
}

func newOffers(ctx context.Context, n *Node) *offers {
	edges, err := n.cfg.Presence.Leases.Edges(ctx)
	return &offers{node: n, others: err == nil && len(edges) > 1, open: map[*Session]time.Time{}}
}

// make gives a session away; its connection is closed when another edge has adopted it, or no later than at a time.
func (o *offers) make(s *Session, last time.Time) {
	until := time.Now()
	if o.others {
		if until = until.Add(offerTime); last.Before(until) {
			until = last
		}
		s.node.background(func() {
			ctx, cancel := context.WithTimeout(s.node.ctx, offerTime)
			defer cancel()
			if err := s.node.cfg.Presence.Dials.Offer(ctx, s.claim); err != nil && !errors.Is(err, presence.ErrDeposed) {
				s.node.cfg.Log.Debug("session was not offered to other edges", "agent", s.claim.Agent, "err", err)
			}
		})
	}
	o.open[s] = until
	o.close()
}

// close closes the connections whose time is over.
func (o *offers) close() {
	for s, until := range o.open {
		if s.life.ended() {
			delete(o.open, s)
		} else if !time.Now().Before(until) {
			s.conn.Close(Reason{Cause: Drained, Text: "the edge is restarting: another one dials"})
			delete(o.open, s)
		}
	}
}
