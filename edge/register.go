package edge

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Bounds of how long a registration without a connection may ask to last.
const (
	MinRegister = time.Minute
	MaxRegister = 24 * time.Hour
)

// Register registers an agent without a connection, or renews that: it is in the directory, and known, until lasts is over, which it returns;
// 0 stands for Config.Register. A session of the agent goes on as it is. Errors: INVALID_REQUEST (the card, or lasts beyond MinRegister and MaxRegister),
// FORBIDDEN, RATE_LIMITED, AGENT_EXISTS where the id is another principal's, UNAVAILABLE.
func (a *Actor) Register(ctx context.Context, card agora.Agent, lasts time.Duration) (until time.Time, err error) {
	n, who := a.node, a.Principal()
	if lasts == 0 {
		lasts = n.cfg.Register
	} else if lasts < MinRegister || lasts > MaxRegister {
		return until, agora.Errorf(agora.InvalidRequest, "a registration lasts from %v to %v", MinRegister, MaxRegister)
	}
	for _, err := range []error{a.Check(), n.limits.checkCard(&card), a.mayBe(card.ID), a.quota.Spend(card.Size())} {
		if err != nil {
			return until, agora.AsError(err)
		}
	}
	r := presence.Registration{Tenant: who.Tenant, Principal: who.Name, Card: card}
	until = n.cfg.Broker.Now().Add(lasts)
	return until, n.register(ctx, r, lasts)
}

// Unregister ends a registration without a connection before its time, and what binds a peer to it; a session of the agent goes on. AGENT_NOT_FOUND where there is none,
// AGENT_EXISTS where it is another principal's, FORBIDDEN, RATE_LIMITED, UNAVAILABLE.
func (a *Actor) Unregister(ctx context.Context, id agora.AgentID) error {
	n, who := a.node, a.Principal()
	for _, err := range []error{a.Check(), a.mayBe(id), a.quota.Spend(0)} {
		if err != nil {
			return agora.AsError(err)
		}
	}
	card, err := n.directory.Card(ctx, who.Tenant, id) // as it was: the peer that speaks as the agent does so no more
	if code(err) == agora.Unavailable {
		return err
	}
	c, over, err := n.cfg.Presence.Registrations.Withdraw(ctx, who.Tenant, who.Name, id)
	switch {
	case errors.Is(err, presence.ErrDeposed):
		return agora.UnknownAgent(id)
	case errors.Is(err, presence.ErrOwned):
		return belongsElsewhere(id)
	case err != nil:
		return agora.AsError(err)
	}
	n.registered.drop(agora.ToAgent(who.Tenant, id))
	if card.Peer != "" {
		if err := a.UnbindPeer(ctx, card.Peer, id); err != nil {
			return err
		}
	}
	if !over {
		n.announce(c, agora.Updated)
		return nil
	}
	if err := n.lapse(ctx, who.Tenant, id); err != nil && !errors.Is(err, presence.ErrDeposed) { // which a sweep has done
		return agora.AsError(err)
	}
	return nil
}

// register is Register of whoever may do it. A session that is just ending is finished first.
func (n *Node) register(ctx context.Context, r presence.Registration, lasts time.Duration) error {
	id := r.Card.ID
	for {
		begun := time.Now()
		epoch, told, err := n.cfg.Presence.Registrations.Register(ctx, r, lasts)
		switch {
		case errors.Is(err, presence.ErrOwned):
			return belongsElsewhere(id)
		case errors.Is(err, presence.ErrEnding):
			if err := n.reap(ctx, r.Tenant, id, false); err != nil {
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
		n.registered.add(r, begun.Add(lasts))
		if told != "" {
			n.announce(presence.Claim{Tenant: r.Tenant, Agent: id, Epoch: epoch}, told)
		}
		return nil
	}
}

func belongsElsewhere(id agora.AgentID) error {
	return agora.Errorf(agora.AgentExists, "agent %q belongs to someone else", id)
}

// lapse ends a registration that is over. ErrDeposed where there is none.
func (n *Node) lapse(ctx context.Context, tenant string, id agora.AgentID) error {
	c, err := n.cfg.Presence.Registrations.Lapsed(ctx, tenant, id)
	if err != nil {
		return err
	}
	if err := n.tell(ctx, c, agora.Offline); err != nil {
		return err
	}
	n.registered.drop(agora.ToAgent(tenant, id))
	return n.cfg.Presence.Registrations.Unregister(ctx, c)
}

// Bounds of the registrations without a connection that an edge keeps in mind; of more it forgets any.
const (
	maxRegistered      = 16384
	maxRegisteredBytes = 64 << 20
)

// registered is the registrations without a connection that this edge has taken: should presence lose everything, nobody else could tell
// it of them. The zero value is ready to use.
type registered struct {
	mu   sync.Mutex // guards the fields below
	held map[agora.Address]registeredUntil
	size int
}

type registeredUntil struct {
	presence.Registration
	until time.Time
}

// add keeps a registration until it is over.
func (d *registered) add(r presence.Registration, until time.Time) {
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
func (d *registered) drop(at agora.Address) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(at)
}

// remove is drop for who holds mu.
func (d *registered) remove(at agora.Address) {
	if r, ok := d.held[at]; ok {
		d.size -= r.Card.Size()
		delete(d.held, at)
	}
}

// all returns the registrations that are not over, and forgets the others.
func (d *registered) all() []registeredUntil {
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
func (d *registered) bytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(d.size)
}

// registerAgain writes what this edge has registered once more: presence may have lost it.
func (n *Node) registerAgain(ctx context.Context) {
	for _, r := range n.registered.all() {
		// An agent of another principal has come meanwhile, or a session of it is just ending: then this is no more.
		_, _, err := n.cfg.Presence.Registrations.Register(ctx, r.Registration, time.Until(r.until))
		if err != nil && n.ctx.Err() == nil {
			n.cfg.Log.Debug("registration was not written again", "agent", r.Card.ID, "err", err)
		}
	}
}
