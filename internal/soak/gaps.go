package soak

import (
	"slices"
	"sync"
	"sync/atomic"
)

// gaps are the holes that one receiver was told of, in its mailbox or in a space.
type gaps struct {
	over atomic.Bool // the receiver's client has ended, which is a violation of its own

	mu    sync.Mutex
	holes []hole // the latest
	count int
}

type hole struct{ from, to uint64 }

// maxHoles is how many holes are remembered.
const maxHoles = 64

// add takes note of a hole.
func (g *gaps) add(from, to uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	g.holes = append(g.holes, hole{from, to})
	if len(g.holes) > maxHoles {
		g.holes = slices.Delete(g.holes, 0, 1)
	}
}

// between tells whether there is a hole after one position and before another; 0 is the end.
func (g *gaps) between(after, before uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.holes, func(h hole) bool { return h.to > after && (before == 0 || h.from < before) })
}

// told returns how many holes there were.
func (g *gaps) told() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}
