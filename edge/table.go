package edge

import (
	"maps"
	"slices"
	"sync"

	"github.com/agora-relay/agora"
)

// sessionTable is the sessions that an edge holds, those included that only flush what is under way. The zero value is
// ready to use.
type sessionTable struct {
	mu      sync.Mutex                   // guards the fields below
	held    map[agora.Address][]*Session // of an agent the running one last; before it those that still flush
	stopped map[*Session]struct{}        // those that still flush, or whose hand-over failed
	moved   map[*inbound]struct{}        // whose positions are to be written
	balked  map[*Session]Place           // whose agents have closed their connections at a frame that they don't take: see [Ending]
	closed  bool
}

// add adds a session. It returns false where the table was closed before: who ends those that it has does not know of
// this one.
func (t *sessionTable) add(s *Session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	put(&t.held, s.address(), append(t.held[s.address()], s))
	s.actor.quota.Tenant().Sessions.Add(1)
	return !t.closed
}

// close returns every session, and has each that comes later be told that it came too late.
func (t *sessionTable) close() []*Session {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	return t.all()
}

func (t *sessionTable) remove(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.moved, &s.inbound)
	delete(t.stopped, s)
	delete(t.balked, s)
	left := t.held[s.address()][:0:0]
	for _, o := range t.held[s.address()] {
		if o != s {
			left = append(left, o)
		} else {
			s.actor.quota.Tenant().Sessions.Add(-1)
		}
	}
	if len(left) == 0 {
		delete(t.held, s.address())
		return
	}
	t.held[s.address()] = left
}

// balks notes at which frame a session's agent has closed its connection.
func (t *sessionTable) balks(s *Session, at Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	put(&t.balked, s, at)
}

// balkedAt returns at which frame a session's agent has closed its connection; false for none.
func (t *sessionTable) balkedAt(s *Session) (at Place, did bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, did = t.balked[s]
	return at, did
}

// all returns every session.
func (t *sessionTable) all() []*Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Session, 0, len(t.held))
	for _, of := range t.held {
		all = append(all, of...)
	}
	return all
}

// agents returns how many agents have sessions here.
func (t *sessionTable) agents() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held)
}

// of returns the sessions of an agent under an epoch before the given one.
func (t *sessionTable) of(a agora.Address, before uint64) []*Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	var old []*Session
	for _, s := range t.held[a] {
		if s.claim.Epoch < before {
			old = append(old, s)
		}
	}
	return old
}

// under returns the session of an agent under an epoch; nil for none.
func (t *sessionTable) under(at agora.Address, epoch uint64) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.held[at] {
		if s.claim.Epoch == epoch {
			return s
		}
	}
	return nil
}

// holds reports whether there is a session under an epoch.
func (t *sessionTable) holds(tenant string, id agora.AgentID, epoch uint64) bool {
	return t.under(agora.ToAgent(tenant, id), epoch) != nil
}

// live returns the session of an agent that runs here; nil for none.
func (t *sessionTable) live(at agora.Address) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.held[at]
	if len(all) == 0 {
		return nil
	}
	s := all[len(all)-1]
	if s.life.ended() {
		return nil
	}
	return s
}

// markStopped notes that a session has stopped: until it is removed, what it had under way is looked after.
func (t *sessionTable) markStopped(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.held[s.address()], s) { // else a hand-over has detached it meanwhile
		put(&t.stopped, s, struct{}{})
	}
}

// allStopped returns the sessions that have stopped and are not detached yet.
func (t *sessionTable) allStopped() []*Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.AppendSeq(make([]*Session, 0, len(t.stopped)), maps.Keys(t.stopped))
}

// markMoved notes that the positions of a session are to be written.
func (t *sessionTable) markMoved(i *inbound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	put(&t.moved, i, struct{}{})
}

// takeMoved returns the sessions whose positions are to be written, and takes them for written.
func (t *sessionTable) takeMoved() map[*inbound]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	moved := t.moved
	t.moved = nil
	return moved
}
