package client

// maxRecent bounds what is remembered of things that are over.
const maxRecent = 4096

// numbers remembers the highest number by sender's session. Of senders
// that have been silent for longest it forgets.
type numbers struct {
	now, before map[lineKey]uint64
}

type lineKey struct{ from, session string }

// fresh reports whether a number was not seen before. A frame without one is always fresh.
func (s *numbers) fresh(from, session string, n uint64) bool {
	if n == 0 || session == "" {
		return true
	}
	key := lineKey{from, session}
	last, ok := s.now[key]
	if !ok {
		last = s.before[key]
	}
	if n <= last {
		return false
	}
	if s.now == nil || !ok && len(s.now) >= maxRecent {
		s.now, s.before = map[lineKey]uint64{}, s.now
	}
	s.now[key] = n
	return true
}

// recent remembers the latest keys it was given.
type recent[K comparable] struct {
	now, before map[K]bool
}

func (r *recent[K]) add(key K) {
	if r.now == nil || len(r.now) >= maxRecent {
		r.now, r.before = map[K]bool{}, r.now
	}
	r.now[key] = true
}

func (r *recent[K]) forget(key K) {
	delete(r.now, key)
	delete(r.before, key)
}

func (r *recent[K]) empty() bool { return len(r.now)+len(r.before) == 0 }

func (r *recent[K]) has(key K) bool { return r.now[key] || r.before[key] }
