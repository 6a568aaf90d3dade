package broker

import (
	"strconv"
	"sync"
)

// laneRegistry is the lanes that are open. The zero value is ready.
type laneRegistry struct {
	acks string // prefix of the subjects on which their records are acknowledged

	mu sync.RWMutex // guards the field below
	m  map[uint64]*Lane
}

// add lets answers find a lane by its number.
func (r *laneRegistry) add(n uint64, l *Lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil {
		r.m = make(map[uint64]*Lane)
	}
	r.m[n] = l
}

func (r *laneRegistry) remove(n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.m, n)
}

// of returns the lane of a number; nil when there is none.
func (r *laneRegistry) of(n uint64) *Lane {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.m[n]
}

func (r *laneRegistry) all() []*Lane {
	r.mu.RLock()
	defer r.mu.RUnlock()
	lanes := make([]*Lane, 0, len(r.m))
	for _, l := range r.m {
		lanes = append(lanes, l)
	}
	return lanes
}

// register gives a lane its number and lets answers find it.
func (b *Broker) register(l *Lane) {
	n := b.ids.next()
	l.number = strconv.FormatUint(n, 36)
	b.lanes.add(n, l)
	b.count.lanes.Add(1)
}

// unregister forgets a lane that has ended, whose lock is held.
func (b *Broker) unregister(l *Lane) {
	if l.watched { // the retrier need not hold it until it looks again
		l.watched = false
		b.retrier.lanes.remove(l)
	}
	n, _ := strconv.ParseUint(l.number, 36, 64) // made by register
	b.lanes.remove(n)
	b.count.lanes.Add(-1)
}
