package verify

import (
	"slices"
	"sync"
)

// Gaps are the gaps that one receiver was told of, in its mailbox or in a space. The zero value has none. Its methods
// may be called by many goroutines at a time.
type Gaps struct {
	mu    sync.Mutex // guards the fields below
	holes recent[hole]
	told  int
	ended bool
}

type hole struct{ from, to uint64 }

// Add records a gap, from one position to another.
func (g *Gaps) Add(from, to uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told++
	g.holes.add(hole{from, to})
}

// End records that the receiver has ended by itself: what does not come any more is not lost.
func (g *Gaps) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// Told returns how many gaps there were.
func (g *Gaps) Told() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.told
}

// between reports whether there is a gap after one position and before another; 0 is the end.
func (g *Gaps) between(after, before uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.holes, func(h hole) bool { return h.to > after && (before == 0 || h.from < before) })
}

func (g *Gaps) over() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended
}
