package verify

import "sync"

// maxOrder is how many events are remembered that not every member has seen.
const maxOrder = 8192

// Order checks that all members of a space see one order: the order in which each event was first seen by anybody is
// the one that all must keep. Its methods may be called by many goroutines at a time.
type Order struct {
	tally *Tally
	name  string // of the space

	mu    sync.Mutex        // guards the fields below
	head  uint64            // rank of the next event
	ranks map[event]uint64  // rank of an event
	ring  [maxOrder]event   // events by rank
	seen  map[string]uint64 // rank after the last one that a member saw
}

// event names an event: its line and its number there.
type event struct {
	line *Line
	n    uint64
}

// NewOrder makes the order of a space in which nobody has seen anything.
func NewOrder(t *Tally, name string) *Order {
	return &Order{tally: t, name: name, ranks: map[event]uint64{}, seen: map[string]uint64{}}
}

// Saw records that a receiver of a line has seen a number of it for the first time, an event of a kind.
func (o *Order) Saw(by *Track, k Kind, n uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := event{by.line, n}
	rank, known := o.ranks[e]
	if !known {
		rank = o.head
		o.head++
		delete(o.ranks, o.ring[rank%maxOrder])
		o.ring[rank%maxOrder], o.ranks[e] = e, rank
	}
	if rank < o.seen[by.name] {
		o.tally.overtaken(k, "%s: %s saw event %d of %s after one that others saw later", o.name, by.name, n, by.line.name)
		return
	}
	o.seen[by.name] = rank + 1
}
