package ownership

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// BelongsElsewhere is AGENT_EXISTS: the id is another principal's.
func BelongsElsewhere(id agora.AgentID) error {
	return agora.Errorf(agora.AgentExists, "agent %q belongs to someone else", id)
}

// lapse ends a registration that is over. ErrDeposed where there is none.
func (d *registrations) lapse(ctx context.Context, tenant string, id agora.AgentID) error {
	c, err := d.cfg.Presence.Registrations.Lapsed(ctx, tenant, id)
	if err != nil {
		return err
	}
	if err := d.status.tell(ctx, c, agora.Offline); err != nil {
		return err
	}
	d.drop(agora.ToAgent(tenant, id))
	return d.cfg.Presence.Registrations.Unregister(ctx, c)
}

// Bounds of the registrations without a connection that an edge keeps in mind; of more it forgets any.
const (
	maxRegistered      = 16384
	maxRegisteredBytes = 64 << 20
)

// registrations are the registrations without a connection that this edge has taken: should presence lose everything, nobody else could tell
// it of them.
type registrations struct {
	cfg    *Config
	status *status

	mu   sync.Mutex // guards the fields below
	held map[agora.Address]registeredUntil
	size int
	by   map[Registrant]int64 // size of those of each
}

// Registrant is who registers agents.
type Registrant struct{ Tenant, Principal string }

func registrantOf(r *presence.Registration) Registrant { return Registrant{r.Tenant, r.Principal} }

type registeredUntil struct {
	presence.Registration
	until time.Time
}

// add keeps a registration until it is over.
func (d *registrations) add(r presence.Registration, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held, d.by = map[agora.Address]registeredUntil{}, map[Registrant]int64{}
	}
	at := agora.ToAgent(r.Tenant, r.Card.ID)
	d.remove(at)
	d.held[at] = registeredUntil{r, until}
	d.size += r.Card.Size()
	d.by[registrantOf(&r)] += int64(r.Card.Size())
	for other := range d.held {
		if len(d.held) <= maxRegistered && d.size <= maxRegisteredBytes {
			return
		}
		if other != at {
			d.remove(other)
		}
	}
}

// drop forgets the registration of an agent.
func (d *registrations) drop(at agora.Address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(at)
}

// remove is drop for who holds mu.
func (d *registrations) remove(at agora.Address) {
	if r, ok := d.held[at]; ok {
		d.size -= r.Card.Size()
		by := registrantOf(&r.Registration)
		if d.by[by] -= int64(r.Card.Size()); d.by[by] <= 0 {
			delete(d.by, by)
		}
		delete(d.held, at)
	}
}

// all returns the registrations that are not over, and forgets the others.
func (d *registrations) all() []registeredUntil {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	all := make([]registeredUntil, 0, len(d.held))
	for at, r := range maps.Clone(d.held) {
		if now.After(r.until) {
			d.remove(at)
			continue
		}
		all = append(all, r)
	}
	return all
}

// bytes is about what is held, by whose it is.
func (d *registrations) bytes() map[Registrant]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.by)
}

// again writes what this edge has registered once more: presence may have lost it.
func (d *registrations) again(ctx context.Context) {
	for _, r := range d.all() {
		// An agent of another principal has come meanwhile, or a session of it is just ending: then this is no more.
		_, _, err := d.cfg.Presence.Registrations.Register(ctx, r.Registration, time.Until(r.until))
		if err != nil && d.cfg.Context.Err() == nil {
			d.cfg.Log.Debug("registration was not written again", "agent", r.Card.ID, "err", err)
		}
	}
}
