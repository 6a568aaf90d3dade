package relay

import (
	"slices"
	"time"

	"github.com/agora-relay/agora"
)

// Bounds of the lanes that a sender keeps open. A lane is a few kilobytes; one that was put
// aside is a few words, and goes on as if it had stayed.
const (
	laneIdle  = 3 * time.Minute // without a message, before a lane is put aside: longer than anything of it can be said again under its id
	laneTrim  = 30 * time.Second
	fewLanes  = 256   // open; beyond it those idle for longest are put aside at once, if that is cheap
	maxLanes  = 4096  // open; beyond it whatever it costs when they are used again
	maxParked = 16384 // put aside; beyond it some are forgotten, and lanes not known then begin as an heir's do: by reading the log
)

// mayHaveUsed tells whether the session may have sent something to an address before; mu is held.
func (s *laneSet) mayHaveUsed(to agora.Address) bool {
	_, used := s.used[to]
	_, parked := s.parked[to]
	return used || parked || s.forgot
}

// trim puts lanes aside when there are too many, those idle for longest first; mu is held.
func (s *laneSet) trim() {
	if len(s.lanes) <= fewLanes || len(s.lanes) < s.patience {
		return
	}
	idle := make([]agora.Address, 0, len(s.lanes))
	for to, l := range s.lanes {
		if l.using == 0 && !l.idle.IsZero() {
			idle = append(idle, to)
		}
	}
	slices.SortFunc(idle, func(a, b agora.Address) int { return s.lanes[a].idle.Compare(s.lanes[b].idle) })
	for _, to := range idle {
		if len(s.lanes) <= fewLanes*3/4 {
			break
		}
		s.park(to, len(s.lanes) > maxLanes)
	}
	s.patience = len(s.lanes) + fewLanes/4 // so that looking costs little a lane, also where nothing can be put aside
}

// park puts a lane aside, unless something holds it; mu is held.
func (s *laneSet) park(to agora.Address, costly bool) {
	if s.numbers.awaited(to) {
		return
	}
	l := s.lanes[to]
	p, ok := l.Park(costly || to.IsBox()) // whose lane is not used again
	if !ok {
		return
	}
	l.peer.lanes.Add(-1)
	l.aside = true
	delete(s.lanes, to)
	if to.IsBox() { // nothing more comes into it
		return
	}
	delete(s.numbers, to)
	for old := range s.parked {
		if len(s.parked) < maxParked {
			break
		}
		delete(s.parked, old)
		s.forgot = true
	}
	put(&s.parked, to, p)
}

// trim has every sender put aside the lanes that were idle for long. It asks them now and then.
func (r *Relay) trim(now time.Time) {
	if now.Sub(r.trimmed) < laneTrim {
		return
	}
	r.trimmed = now
	r.mu.Lock()
	senders := make([]*laneSet, 0, len(r.senders))
	for s := range r.senders {
		senders = append(senders, s)
	}
	r.mu.Unlock()
	for _, s := range senders {
		s.parkIdle(now.Add(-laneIdle))
	}
}

// parkIdle puts aside the lanes that were idle since a time.
func (s *laneSet) parkIdle(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patience = 0
	for to, l := range s.lanes {
		if l.using == 0 && !l.idle.IsZero() && (l.idle.Before(since) || to.IsBox() && l.idle.Before(since.Add(laneIdle-laneTrim))) {
			s.park(to, false)
		}
	}
	s.trim()
}
