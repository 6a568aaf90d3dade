package client

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// memberships are the spaces that the client is in.
type memberships struct {
	sender *sender
	wake   func()        // tells the writer that there is something to acknowledge; never blocks
	limit  int           // bytes that may wait in each space
	stall  time.Duration // how long a stream may stay unread while it holds up others

	mu     sync.Mutex // guards the fields below
	spaces map[string]*Space
	left   map[string]uint64 // positions of spaces that an earlier run of the program has left
}

func newMemberships(s *sender, wake func(), limit int, stall time.Duration) *memberships {
	return &memberships{sender: s, wake: wake, limit: limit, stall: stall, spaces: map[string]*Space{}}
}

// enlist notes that events of a space are wanted, before they can come, and
// returns the question to ask.
func (m *memberships) enlist(name string, opts []JoinOptions) (*Space, *wire.Frame) {
	q := &wire.Frame{Type: "space.join", Space: name}
	s, left, was := m.enter(name)
	if was && len(opts) == 0 {
		q.LastSeq, q.HasLastSeq = left, true
	}
	for _, o := range opts {
		q.LastSeq, q.HasLastSeq, q.History = o.LastSeq, o.LastSeq > 0, o.History
	}
	switch {
	case q.HasLastSeq:
		s.log.begin(q.LastSeq)
		s.log.state(q.LastSeq)
	case q.History > 0:
		s.log.mu.Lock()
		s.history = true
		s.log.mu.Unlock()
	}
	return s, q
}

// enter returns the space of that name, made again if there was none: then left is where an earlier run was in it, if
// one was.
func (m *memberships) enter(name string) (s *Space, left uint64, was bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s = m.spaces[name]; s != nil {
		return s, 0, false
	}
	s = &Space{sender: m.sender, name: name, limit: m.limit, queue: newQueue[*Event]()}
	s.forget = func(why error) { m.forget(s, why) }
	s.log = inlog{space: name, stall: m.stall, wake: m.wake, freed: s.freed, streams: map[streamKey]*inStream{}}
	m.spaces[name] = s
	left, was = m.left[name]
	return s, left, was
}

// space returns the space of that name that the client is in, or nil.
func (m *memberships) space(name string) *Space {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spaces[name]
}

// forget ends a space.
func (m *memberships) forget(s *Space, why error) {
	m.mu.Lock()
	if m.spaces[s.name] == s {
		delete(m.spaces, s.name)
	}
	m.mu.Unlock()
	s.finish(why)
}

// all returns the spaces that the client is in.
func (m *memberships) all() []*Space {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.spaces))
}

// load takes the positions of an earlier run of the program.
func (m *memberships) load(positions map[string]uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = maps.Clone(positions)
}

// settled returns the positions up to which the application is done with the spaces, as far as they are known.
func (m *memberships) settled() map[string]uint64 {
	all := map[string]uint64{}
	for _, s := range m.all() {
		if seq, known := s.log.settled(); known {
			all[s.name] = seq
		}
	}
	return all
}

// positions returns those of settled, and those of spaces that an earlier run has left.
func (m *memberships) positions() map[string]uint64 {
	all := m.settled()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, seq := range m.left {
		if _, known := all[name]; !known {
			all[name] = seq
		}
	}
	return all
}

// interrupted notes in every space that the connection was lost.
func (m *memberships) interrupted() {
	for _, s := range m.all() {
		s.interrupted()
	}
}

// rejoins returns the joins that a new session begins with.
func (m *memberships) rejoins() []*frame {
	var all []*frame
	for _, s := range m.all() {
		s.log.mu.Lock()
		all = append(all, s.rejoining(s.log.book.done))
		s.log.mu.Unlock()
	}
	return all
}

// failJoin ends a space that a new session was not let into again. Where that was refused for the moment, it asks again
// after a pause: the client is a member until it is told otherwise.
func (m *memberships) failJoin(f *wire.Frame, why *agora.Error) {
	s := m.space(f.Space)
	switch {
	case s == nil || !s.rejoins(f.RequestID):
	case why.Passes():
		time.AfterFunc(s.pause(why.RetryAfter), func() { s.rejoinAgain(f.RequestID) })
	default:
		m.forget(s, why)
	}
}

// finish ends every space.
func (m *memberships) finish(why error) {
	for _, s := range m.all() {
		s.finish(why)
	}
}
