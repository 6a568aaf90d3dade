package broker

import (
	"strconv"
	"sync"
)

// laneSet is the lanes that the sweeper looks after.
type laneSet struct {
	mu      sync.Mutex // guards the fields below; taken under a lane's lock, never before it
	m       map[*Lane]struct{}
	hurry   bool
	looking bool    // the sweeper looks again by itself, within sweepEvery
	spare   []*Lane // the sweeper's: room for what all returns
}

// add reports whether the sweeper has to be woken for the lane to be looked at within sweepEvery.
func (s *laneSet) add(l *Lane) (wake bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[l] = struct{}{}
	wake, s.looking = !s.looking, true
	return wake
}

// rest lets the sweeper sleep, if there are no lanes.
func (s *laneSet) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.m) == 0 {
		s.looking = false
	}
	return !s.looking
}

func (s *laneSet) remove(l *Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, l)
}

// all returns the lanes, to be cleared and not used once it is called again, and whether their records are to be sent again at once.
func (s *laneSet) all() (lanes []*Lane, hurry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lanes = s.spare[:0]
	for l := range s.m {
		lanes = append(lanes, l)
	}
	s.spare = lanes
	hurry, s.hurry = s.hurry, false
	return lanes, hurry
}

// register gives a lane its number and lets answers find it.
func (b *Broker) register(l *Lane) {
	n := b.next.Add(1)
	l.number = strconv.FormatUint(n, 36)
	b.lanesMu.Lock()
	b.lanes[n] = l
	b.lanesMu.Unlock()
	b.count.lanes.Add(1)
}

// unregister forgets a lane that has ended, whose lock is held.
func (b *Broker) unregister(l *Lane) {
	if l.swept { // the sweeper need not hold it until it looks again
		l.swept = false
		b.sweeper.lanes.remove(l)
	}
	n, _ := strconv.ParseUint(l.number, 36, 64) // made by register
	b.lanesMu.Lock()
	delete(b.lanes, n)
	b.lanesMu.Unlock()
	b.count.lanes.Add(-1)
}
