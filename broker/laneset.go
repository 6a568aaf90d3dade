package broker

import (
	"sync"
)

// laneSet is the lanes that the retrier looks after.
type laneSet struct {
	mu      sync.Mutex // guards the fields below; taken under a lane's lock, never before it
	m       map[*Lane]struct{}
	hurry   bool
	looking bool    // the retrier looks again by itself, within retrierEvery
	spare   []*Lane // the retrier's: room for what all returns
}

// add reports whether the retrier has to be woken for the lane to be looked at within retrierEvery.
func (s *laneSet) add(l *Lane) (wake bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m[l] = struct{}{}
	wake, s.looking = !s.looking, true
	return wake
}

// rest lets the retrier sleep, if there are no lanes.
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
