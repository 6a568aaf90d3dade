package edge

import (
	"sync"

	"github.com/agora-relay/agora/presence"
)

// dials is what an edge keeps of sessions whose connections are dialled, here or to be. The zero value is ready to use.
type dials struct {
	mu       sync.Mutex // guards the fields below
	held     map[*Session]presence.Dialled
	adopters map[string]Adopter // by dialect
}

// put keeps how the connection of a session is dialled.
func (d *dials) put(s *Session, how presence.Dialled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	put(&d.held, s, how)
}

// of returns how the connection of a session is dialled; nil where its agent has made it.
func (d *dials) of(s *Session) *presence.Dialled {
	if !s.claim.Dialled {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	how, ok := d.held[s]
	if !ok {
		return nil
	}
	return &how
}

func (d *dials) drop(s *Session) {
	if s.claim.Dialled {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.held, s)
	}
}

// adoptBy has agents of a dialect be dialled by a door, and reports whether it is the first one.
func (d *dials) adoptBy(dialect string, door Adopter) (first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first = d.adopters == nil
	put(&d.adopters, dialect, door)
	return first
}

// adopter returns the door of a dialect; nil where there is none here.
func (d *dials) adopter(dialect string) Adopter {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.adopters[dialect]
}
