package soak

import "sync"

// maxOrder is how many events are remembered that not every member has seen.
const maxOrder = 8192

// order checks that all members of a space see one order: the order in which
// each event was first seen by anybody is the one that all must keep.
type order struct {
	tally *tally
	name  string // of the space

	mu     sync.Mutex
	head   uint64            // rank of the next event
	places map[place]uint64  // rank of an event
	ring   [maxOrder]place   // events by rank
	seen   map[string]uint64 // rank after the last one that a member saw
}

// place names an event: its line and its number there.
type place struct {
	line *line
	n    uint64
}

func newOrder(t *tally, name string) *order {
	return &order{tally: t, name: name, places: map[place]uint64{}, seen: map[string]uint64{}}
}

// saw takes note that a member has seen an event.
func (o *order) saw(member string, p place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rank, known := o.places[p]
	if !known {
		rank = o.head
		o.head++
		delete(o.places, o.ring[rank%maxOrder])
		o.ring[rank%maxOrder], o.places[p] = p, rank
	}
	if rank < o.seen[member] {
		o.tally.counts[event].reordered.Add(1)
		o.tally.violated(Reordered, "%s: %s saw event %d of %s after one that others saw later", o.name, member, p.n, p.line.name)
		return
	}
	o.seen[member] = rank + 1
}
