package sidecar

import (
	"context"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// shares are slots that callers have their fair share of: none ever has all of them, and one that becomes free is for
// the one who has the fewest of those that wait, the first that came of several.
type shares struct {
	most int // of one caller

	mu      sync.Mutex // guards the fields below
	free    int
	taken   map[peer.ID]int
	waiting []*waiter // in the order in which they came
}

type waiter struct {
	who   peer.ID
	given chan struct{} // closed when it has a slot
}

// newShares returns n slots, of which an eighth is out of reach for a caller that has all others.
func newShares(n int) *shares {
	n = max(1, n)
	return &shares{most: n - n/8, free: n, taken: map[peer.ID]int{}}
}

// try takes a slot where one may be had at once.
func (s *shares) try(who peer.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grant(who)
}

// grant takes a slot for a caller, if it may have one more. The lock is held.
func (s *shares) grant(who peer.ID) bool {
	if s.free == 0 || s.taken[who] >= s.most {
		return false
	}
	s.free--
	s.taken[who]++
	return true
}

// take takes a slot, and waits for one as long as ctx lasts: then it has none, and returns why.
func (s *shares) take(ctx context.Context, who peer.ID) error {
	s.mu.Lock()
	if s.grant(who) {
		s.mu.Unlock()
		return nil
	}
	w := &waiter{who, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, one := range s.waiting {
		if one == w {
			s.waiting = append(s.waiting[:k], s.waiting[k+1:]...)
			return context.Cause(ctx)
		}
	}
	s.release(who) // it was given at the last moment
	return context.Cause(ctx)
}

// give gives a slot back.
func (s *shares) give(who peer.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(who)
}

// release hands a slot to the next one. The lock is held.
func (s *shares) release(who peer.ID) {
	s.free++
	if s.taken[who]--; s.taken[who] == 0 {
		delete(s.taken, who)
	}
	next := -1
	for k, w := range s.waiting {
		if s.taken[w.who] < s.most && (next < 0 || s.taken[w.who] < s.taken[s.waiting[next].who]) {
			next = k
		}
	}
	if next < 0 {
		return
	}
	w := s.waiting[next]
	s.waiting = append(s.waiting[:next], s.waiting[next+1:]...)
	s.grant(w.who)
	close(w.given)
}
