package edge

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// Moving is how fast agents are told to go to other edges, when the edge ends and while it has more of them. A zero
// value means the default that its comment names.
type Moving struct {
	Rate    int           // drain.rate: agents told to reconnect per second as the edge ends; 1000
	Percent int           // rebalance.percent: of the edge's agents that it tells each minute, while it has more than the others; none
	Every   time.Duration // in place of that minute. For tests
	Least   int           // agents below which an edge tells none; 100, of which one percent is one. For tests
	Rest    time.Duration // how long a connection lasts before it is among them; 10m. For tests
}

func (m Moving) withDefaults() Moving {
	m.Rate = cmp.Or(m.Rate, 1000)
	m.Every = cmp.Or(m.Every, time.Minute)
	m.Least = cmp.Or(m.Least, 100)
	m.Rest = cmp.Or(m.Rest, 10*time.Minute)
	return m
}

// Balancer evens out how many agents the edges have: an edge that has more than the others tells some of its agents to
// reconnect, and hands them over as at a drain, so nothing is lost. It does so slowly by itself (see [Moving]), and at
// once where an operator asks. Its methods may be called at the same time.
type Balancer struct {
	node  *Node
	stats BalancerStats
	asked atomic.Bool // an operator's moves are under way
	above bool        // the loop's own: there were too many agents, and there still are more than at other edges

	mu    sync.Mutex // guards moved
	moved map[agora.Address]time.Time
}

// BalancerStats counts what a Balancer does. All fields may be read at any time.
type BalancerStats struct {
	Moved atomic.Int64 // agents told to reconnect to another edge
	Looks atomic.Int64 // times that the edge has looked whether it has more agents than others
}

const (
	tooMany    = 110       // percent of the mean: beyond it an edge begins to move agents
	even       = 102       // percent of the mean: down to it the edge continues
	remembered = time.Hour // for how long an agent that was moved, and came back, is not moved again
)

// Balancer returns what evens out how many agents the edges have.
func (n *Node) Balancer() *Balancer { return n.balancer }

// Stats returns the counters. They go on counting.
func (b *Balancer) Stats() *BalancerStats { return &b.stats }

// run looks again and again whether the edge has more agents than the others, and moves some of them, until ctx is
// over.
func (b *Balancer) run(ctx context.Context) {
	every := b.node.cfg.Moving.Every
	if !pause.For(ctx, rand.N(every)) { // not all edges at once
		return
	}
	for b.moveGently(ctx, b.look(ctx), every) {
		b.stats.Looks.Add(1)
	}
}

// look returns how many agents to move before the edge looks again: none unless it has more than the others, and every
// edge can serve.
func (b *Balancer) look(ctx context.Context) int {
	cfg := &b.node.cfg
	own := int(b.node.stats.sessions.Load())
	if own < cfg.Moving.Least || b.asked.Load() {
		b.above = false
		return 0
	}
	loads, err := b.Loads(ctx)
	if err != nil {
		cfg.Log.Debug("no agent is moved to other edges while one of them can't serve", "err", err)
		return 0
	}
	mean, was := Mean(loads), b.above
	b.above = exceeds(own, mean, was)
	if !b.above {
		return 0
	}
	if !was {
		cfg.Log.Info("this edge has more agents than the others: it tells some to reconnect", "agents", own, "mean", mean)
	}
	return min(own-mean, own*cfg.Moving.Percent/100)
}

// exceeds reports whether an edge has too many agents; one that did is to come closer to the mean before it does not,
// so that it does not move agents to and fro.
func exceeds(own, mean int, did bool) bool {
	most := tooMany
	if did {
		most = even
	}
	return own*100 > mean*most
}

// moveGently moves n agents one after the other, in so much time altogether; false once ctx is over. It moves none
// while the edge can't serve, or an operator has it move others.
func (b *Balancer) moveGently(ctx context.Context, n int, within time.Duration) bool {
	if n == 0 {
		return pause.For(ctx, within)
	}
	c := b.candidates(true)
	for range n {
		if b.node.Ready() == nil && !b.asked.Load() {
			b.move(c.next())
		}
		if !pause.For(ctx, within/time.Duration(n)) {
			return false
		}
	}
	return true
}

// MoveAtOnce begins to move agents, some a second, and returns how many it will at most. An operator asks for that: it
// moves those first that were not moved before, and have nothing under way. It moves none while an earlier request is
// being carried out, or the edge can't serve.
func (b *Balancer) MoveAtOnce(n, perSecond int) int {
	if n < 1 || perSecond < 1 || b.node.Ready() != nil || !b.asked.CompareAndSwap(false, true) {
		return 0
	}
	c := b.candidates(false)
	n = min(n, c.len())
	b.node.cfg.Log.Info("an operator has this edge tell agents to reconnect, as it has more than others", "agents", n, "per_second", perSecond)
	b.node.background(func() {
		defer b.asked.Store(false)
		for range n {
			if b.node.Ready() != nil {
				return
			}
			b.move(c.next())
			if !pause.For(b.node.ctx, time.Second/time.Duration(perSecond)) {
				return
			}
		}
	})
	return n
}

// move tells an agent to reconnect, at once and to another edge if it can, and closes its connection. It does nothing
// for nil.
func (b *Balancer) move(s *Session) {
	if s == nil || s.life.ended() {
		return
	}
	b.remember(s.address())
	b.stats.Moved.Add(1)
	s.conn.Notify(Notice{Kind: NoticeReconnect})
	s.conn.Close(Reason{Cause: Drained, Text: "other edges have fewer agents: reconnect"})
}
