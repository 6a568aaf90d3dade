package broker

import (
	"strconv"
	"sync"
)

// laneSet is the lanes that the sweeper looks after.
type laneSet struct {
	mu    sync.Mutex // guards the fields below; taken under a lane's lock, never before it
	m     map[*Lane]struct{}
	hurry bool
}

func (s *laneSet) add(l *Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[l] = struct{}{}
}

func (s *laneSet) remove(l *Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, l)
}

// all returns the lanes, and whether their records are to be sent again at once.
func (s *laneSet) all() (lanes []*Lane, hurry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lanes = make([]*Lane, 0, len(s.m))
	for l := range s.m {
		lanes = append(lanes, l)
	}
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

func (b *Broker) unregister(l *Lane) {
	n, _ := strconv.ParseUint(l.number, 36, 64) // made by register
	b.lanesMu.Lock()
	delete(b.lanes, n)
	b.lanesMu.Unlock()
	b.count.lanes.Add(-1)
}
