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

// Bounds of the registrations without a connection that an edge keeps in mind; of more it forgets one of the principal
// that has most here.
const (
	maxRegistered      = 16384
	maxRegisteredBytes = 64 << 20
)

// registrations are the registrations without a connection that this edge has taken: should presence lose everything,
// nobody else could tell it of them.
type registrations struct {
	cfg    *Config
	status *status

	mu   sync.Mutex // guards the fields below
	held map[agora.Address]registeredUntil
	of   map[Registrant]*portion // what each principal has of held; nothing of who has none
	size int
}

// Registrant is a principal that registers agents.
type Registrant struct{ Tenant, Principal string }

func registrantOf(r *presence.Registration) Registrant { return Registrant{r.Tenant, r.Principal} }

// portion is the registrations of a principal.
type portion struct {
	held map[agora.Address]struct{}
	size int
}

// cost is about how much a registration takes, for telling who has most.
func (r *registeredUntil) cost() int { return r.Card.Size() + maxRegisteredBytes/maxRegistered }

type registeredUntil struct {
	presence.Registration
	until time.Time
}

// add keeps a registration until it is over.
func (d *registrations) add(r presence.Registration, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held, d.of = map[agora.Address]registeredUntil{}, map[Registrant]*portion{}
	}
	at, who := agora.ToAgent(r.Tenant, r.Card.ID), registrantOf(&r)
	d.remove(at)
	kept := registeredUntil{r, until}
	d.held[at] = kept
	d.size += r.Card.Size()
	if d.of[who] == nil {
		d.of[who] = &portion{held: map[agora.Address]struct{}{}}
	}
	d.of[who].held[at] = struct{}{}
	d.of[who].size += kept.cost()
	for len(d.held) > maxRegistered || d.size > maxRegisteredBytes {
		d.remove(d.largest())
	}
}

// largest returns a registration of the principal that has most here. The caller holds mu.
func (d *registrations) largest() (at agora.Address) {
	var most *portion
	for _, p := range d.of {
		if most == nil || p.size > most.size {
			most = p
		}
	}
	for at = range most.held {
		break
	}
	return at
}

// drop forgets the registration of an agent.
func (d *registrations) drop(at agora.Address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(at)
}

// remove is drop for who holds mu.
func (d *registrations) remove(at agora.Address) {
	r, ok := d.held[at]
	if !ok {
		return
	}
	d.size -= r.Card.Size()
	delete(d.held, at)
	who := registrantOf(&r.Registration)
	p := d.of[who]
	p.size -= r.cost()
	if delete(p.held, at); len(p.held) == 0 {
		delete(d.of, who)
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
	by := make(map[Registrant]int64, len(d.of))
	for who, p := range d.of {
		by[who] = int64(p.size)
	}
	return by
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
