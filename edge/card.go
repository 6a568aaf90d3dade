package edge

import (
	"sync"
	"time"

	"github.com/agora-relay/agora"
)

// card is the card of a session's agent. It takes next to nothing where the agent says no more than its id, as most do.
type card struct {
	registered int64        // when its session began, in Unix nanoseconds; 0 where that is not known
	said       *agora.Agent // what it said of itself, not to be changed; nil for nothing but its id and dialect
	dialect    string       // in which it said nothing more; empty for Agora's own
}

func cardOf(a agora.Agent) card {
	var c card
	if !a.RegisteredAt.IsZero() {
		c.registered = a.RegisteredAt.UnixNano()
	}
	c.dialect = a.Dialect
	if !a.Bare() {
		c.said = &a
	}
	return c
}

// of returns the card as that of an agent.
func (c card) of(id agora.AgentID) agora.Agent {
	if c.said != nil {
		return *c.said
	}
	return agora.Agent{ID: id, Name: string(id), Dialect: c.dialect, RegisteredAt: c.since()}
}

// since is when the session began; zero where that is not known.
func (c card) since() time.Time {
	if c.registered == 0 {
		return time.Time{}
	}
	return time.Unix(0, c.registered)
}

// held is the bytes that the edge keeps for what the agent said.
func (c card) held() int64 {
	if c.said == nil {
		return 0
	}
	return int64(c.said.Size())
}

// profile is what the agent of a session says of itself, and can do.
type profile struct {
	mu   sync.Mutex // guards the fields below
	gone bool       // the session is detached: no card is kept any more
	card card
}

func (p *profile) now() card {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.card
}

// keep keeps a card, and returns by how many bytes more that is than the last one.
func (p *profile) keep(c card) (more int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return 0
	}
	more = c.held() - p.card.held()
	p.card = c
	return more
}

// letGo lets go of the card permanently, and returns how many bytes that was.
func (p *profile) letGo() (held int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held = p.card.held()
	p.card, p.gone = card{}, true
	return held
}
