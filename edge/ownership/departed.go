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

// departed is what an edge knows of sessions that have left it and are in
// their grace: should presence lose everything, nobody else could tell it of them, and what they
// had open would never be ended for their receivers. The zero value is ready to use.
type departed struct {
	mu   sync.Mutex // guards the field below
	held map[agora.Address]departure
}

type departure struct {
	held  presence.Held
	until time.Time // the end of the grace
}

// add keeps a session until its grace is over.
func (d *departed) add(h presence.Held, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held = map[agora.Address]departure{}
	}
	if len(d.held) >= maxDeparted {
		d.expire()
	}
	for at := range d.held {
		if len(d.held) < maxDeparted {
			break
		}
		delete(d.held, at)
	}
	d.held[agora.ToAgent(h.Claim.Tenant, h.Claim.Agent)] = departure{h, until}
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
	maps.DeleteFunc(d.held, func(_ agora.Address, x departure) bool { return now.After(x.until) })
}
