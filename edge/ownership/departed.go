package ownership

import (
	"maps"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// maxDeparted bounds how many sessions that are in their grace an edge keeps in mind; of more it forgets any.
const maxDeparted = 16384

// departed is what an edge knows of sessions that have left it, until another edge has begun them or their grace is
// over: should presence lose everything, nobody else could tell it of them, and what they had open would never be ended
// for their receivers. A claim by which one was taken may be lost as well before the session begins: until then its
// agent has the token of here. Of one that has begun elsewhere nothing is kept: where its holder dies together with
// presence, the log ends what it had open, and the agent is not refused for a token that presence does not know. The
// zero value is ready to use.
type departed struct {
	mu      sync.Mutex // guards the fields below
	held    map[agora.Address]departure
	expired time.Time // when those whose grace is over were looked for last
}

type departure struct {
	held  presence.Held
	until time.Time // the end of the grace
}

// add keeps a session until its grace is over, unless a younger claim of its agent is kept.
func (d *departed) add(h presence.Held, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held = map[agora.Address]departure{}
	}
	if len(d.held) >= maxDeparted && time.Since(d.expired) > time.Second {
		d.expire()
	}
	for at := range d.held {
		if len(d.held) < maxDeparted {
			break
		}
		delete(d.held, at)
	}
	at := agora.ToAgent(h.Claim.Tenant, h.Claim.Agent)
	if d.held[at].held.Claim.Epoch <= h.Claim.Epoch {
		d.held[at] = departure{h, until}
	}
}

// claims returns the claims under which the sessions stood here that are kept.
func (d *departed) claims() []presence.Claim {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire()
	all := make([]presence.Claim, 0, len(d.held))
	for _, x := range d.held {
		all = append(all, x.held.Claim)
	}
	return all
}

// dropClaims forgets the sessions that stood under some claims.
func (d *departed) dropClaims(cs []presence.Claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range cs {
		if at := agora.ToAgent(c.Tenant, c.Agent); d.held[at].held.Claim.Epoch == c.Epoch {
			delete(d.held, at)
		}
	}
}

// drop forgets the session of an agent, which is here again.
func (d *departed) drop(a agora.Address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.held, a)
}

// all returns the sessions that are still in their grace, and forgets the others.
func (d *departed) all() []presence.Held {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire()
	all := make([]presence.Held, 0, len(d.held))
	for _, x := range d.held {
		x.held.Away = max(time.Until(x.until), time.Millisecond)
		all = append(all, x.held)
	}
	return all
}

// expire forgets the sessions whose grace is over. The caller holds mu.
func (d *departed) expire() {
	now := time.Now()
	d.expired = now
	maps.DeleteFunc(d.held, func(_ agora.Address, x departure) bool { return now.After(x.until) })
}
