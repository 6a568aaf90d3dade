package ownership

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Register registers an agent without a connection, for as long as lasts. A session that is just ending is finished first. AGENT_EXISTS where the id is another principal's, UNAVAILABLE.
func (o *Owner) Register(ctx context.Context, r presence.Registration, lasts time.Duration) error {
	id := r.Card.ID
	for {
		begun := time.Now()
		epoch, told, err := o.cfg.Presence.Register(ctx, r, lasts)
		switch {
		case errors.Is(err, presence.ErrOwned):
			return BelongsElsewhere(id)
		case errors.Is(err, presence.ErrEnding):
			if err := o.reaper.reap(ctx, r.Tenant, id, false); err != nil {
				return agora.AsError(err)
			}
			if err := ctx.Err(); err != nil {
				return agora.AsError(err)
			}
			continue
		case err != nil:
			return agora.AsError(err)
		}
		r.Epoch = epoch
		o.registered.add(r, begun.Add(lasts))
		if told != "" {
			o.status.announce(presence.Claim{Tenant: r.Tenant, Agent: id, Epoch: epoch}, told)
		}
		return nil
	}
}

// Withdrawal is a registration without a connection that was withdrawn.
type Withdrawal struct {
	owner *Owner
	claim presence.Claim
	over  bool // no session goes on
}

// Withdraw ends a registration before its time; a session of the agent goes on. The caller calls Finish then. AGENT_NOT_FOUND where there is none,
// AGENT_EXISTS where it is another principal's, UNAVAILABLE.
func (o *Owner) Withdraw(ctx context.Context, tenant, principal string, id agora.AgentID) (*Withdrawal, error) {
	c, over, err := o.cfg.Presence.Withdraw(ctx, tenant, principal, id)
	switch {
	case errors.Is(err, presence.ErrDeposed):
		return nil, agora.UnknownAgent(id)
	case errors.Is(err, presence.ErrOwned):
		return nil, BelongsElsewhere(id)
	case err != nil:
		return nil, agora.AsError(err)
	}
	o.registered.drop(agora.ToAgent(tenant, id))
	return &Withdrawal{o, c, over}, nil
}

// Finish tells of it. UNAVAILABLE: then a sweep does.
func (w *Withdrawal) Finish(ctx context.Context) error {
	if !w.over {
		w.owner.status.announce(w.claim, agora.Updated)
		return nil
	}
	err := w.owner.registered.lapse(ctx, w.claim.Tenant, w.claim.Agent)
	if err != nil && !errors.Is(err, presence.ErrDeposed) { // which a sweep has done
		return agora.AsError(err)
	}
	return nil
}

// Registered is about how many bytes the edge keeps of registrations without a connection.
func (o *Owner) Registered() int64 { return o.registered.bytes() }

// BelongsElsewhere is AGENT_EXISTS: the id is another principal's.
func BelongsElsewhere(id agora.AgentID) error {
	return agora.Errorf(agora.AgentExists, "agent %q belongs to someone else", id)
}

// lapse ends a registration that is over. ErrDeposed where there is none.
func (d *registrations) lapse(ctx context.Context, tenant string, id agora.AgentID) error {
	c, err := d.cfg.Presence.Lapsed(ctx, tenant, id)
	if err != nil {
		return err
	}
	if err := d.status.tell(ctx, c, agora.Offline); err != nil {
		return err
	}
	d.drop(agora.ToAgent(tenant, id))
	return d.cfg.Presence.Unregister(ctx, c)
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
}

type registeredUntil struct {
	presence.Registration
	until time.Time
}

// add keeps a registration until it is over.
func (d *registrations) add(r presence.Registration, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held = map[agora.Address]registeredUntil{}
	}
	at := agora.ToAgent(r.Tenant, r.Card.ID)
	d.remove(at)
	d.held[at] = registeredUntil{r, until}
	d.size += r.Card.Size()
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

// bytes is about what is held.
func (d *registrations) bytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(d.size)
}

// again writes what this edge has registered once more: presence may have lost it.
func (d *registrations) again(ctx context.Context) {
	for _, r := range d.all() {
		// An agent of another principal has come meanwhile, or a session of it is just ending: then this is no more.
		_, _, err := d.cfg.Presence.Register(ctx, r.Registration, time.Until(r.until))
		if err != nil && d.cfg.Context.Err() == nil {
			d.cfg.Log.Debug("registration was not written again", "agent", r.Card.ID, "err", err)
		}
	}
}
