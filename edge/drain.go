package edge

import (
	"context"
	"time"
)

// Drain empties the edge until ctx is over: it takes no new sessions, tells
// its agents to reconnect, a paced group at a time so that the other edges are
// not stormed, closes them, flushes what is under way and gives the lease
// back. Nothing is lost by it and nothing ends: every session goes on at another edge.
func (n *Node) Drain(ctx context.Context) {
	n.draining.Store(true)
	const groups = 10 // a second
	size := max(1, n.cfg.DrainRate/groups)
	all := n.all()
	for len(all) > 0 && ctx.Err() == nil {
		group := all[:min(size, len(all))]
		all = all[len(group):]
		n.drainGroup(group)
		if len(all) > 0 {
			pause(ctx, time.Second/groups)
		}
	}
	for len(n.all()) > 0 && pause(ctx, 20*time.Millisecond) {
	}
	if len(n.all()) == 0 && ctx.Err() == nil {
		if err := n.cfg.Presence.Resign(ctx, n.holder); err != nil {
			n.cfg.Log.Warn("lease was not given back", "edge", n.cfg.ID, "err", err)
		}
	}
}

// drainGroup tells a group to reconnect and closes it.
func (n *Node) drainGroup(group []*Session) {
	for i, s := range group {
		// Spread over the group's time, so that the others see a trickle.
		after := time.Duration(i) * 100 * time.Millisecond / time.Duration(len(group))
		s.conn.Notify(Notice{Kind: NoticeReconnect, After: after})
		s.conn.Close(Reason{Close: CloseRestart, Text: "the edge is restarting: reconnect"})
	}
}
