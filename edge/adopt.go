package edge

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// A session whose connection an edge has dialled ([Hello.Dialled]) can't come back by itself when its edge dies or drains: another edge adopts
// it, which dials its agent anew. Every edge looks for such sessions, if it has a door of their dialect. Whoever can dial the agent claims
// the session under the epoch that it has seen: of several the first one has it, as the others find another epoch.

// Adopter is a door for agents that an edge dials.
type Adopter interface {
	// Adopt dials o.Address by [Node.Dialer] and opens the session by o.Open, whose error it returns as it is. It ends with ctx. The
	// session is the door's then, as one that it has opened by itself. It may be called for many agents at the same time.
	Adopt(ctx context.Context, o *Orphan) error
}

// Adopts has the node adopt sessions of a dialect through a door, until the node is closed. It is called once for a dialect.
func (n *Node) Adopts(dialect string, door Adopter) {
	n.dials.mu.Lock()
	defer n.dials.mu.Unlock()
	if n.dials.adopters == nil {
		n.background(n.adoptOrphans)
	}
	put(&n.dials.adopters, dialect, door)
}

// Orphan is a session that an edge is to adopt.
type Orphan struct {
	Address string      // to dial
	Card    agora.Agent // what its agent has said of itself, without schemas and registration
	Actor   *Actor      // for whom: the principal that had the session opened, or has just asked for it

	seen   presence.Orphan
	slot   *admission.Slot
	opened bool
}

// Open goes on with the session through a connection: as [Actor.Open] with what o knows of the session, and its place in what the edge counts. Where
// it fails, as another edge was faster, the connection is to be closed. From h it takes what the door says of the connection; its card, unless
// that is to be another one, and its principal are as they were.
func (o *Orphan) Open(ctx context.Context, h Hello, conn Conn) (*Session, Welcome, error) {
	if h.Card.ID == "" {
		h.Card.ID = o.seen.Agent
	}
	h.orphan, h.Dialled, h.Resume = o, "", ""
	h.Admission = Admission{Actor: o.Actor, slot: o.slot}
	s, w, err := o.Actor.Open(ctx, h, conn)
	o.opened = err == nil
	return s, w, err
}

// Admission is the place of the session's connection in what the edge counts. Once the session is open the door owes a call of Release.
func (o *Orphan) Admission() Admission { return Admission{Actor: o.Actor, slot: o.slot} }

// errAdopted is the error of who comes second.
var errAdopted = agora.Errorf(agora.AgentExists, "another edge goes on with this session, or it is over")

const (
	adoptBatch    = 64               // orphans that are looked at in one round
	mostAdoptions = 32               // under way at one edge
	adoptTime     = 10 * time.Second // for dialling, and the claim
	keptFor       = 3 * time.Second  // so long others leave an orphan alone that an edge dials
)

// adoptOrphans looks for sessions without an edge, until the node is closed.
func (n *Node) adoptOrphans() {
	n.dials.silent, n.dials.gone = map[presence.Holder]*absence{}, map[presence.Holder]struct{}{}
	every := max(min(n.renewalInterval(), time.Second), 20*time.Millisecond)
	for wait := every; pause.For(n.ctx, wait/2+rand.N(wait)); {
		wait = every
		if n.Ready() != nil {
			continue
		}
		soon, err := n.seekForsaken(n.ctx)
		if soon {
			wait = min(every, askAgain)
		}
		if err == nil {
			err = n.adoptDue(n.ctx)
		}
		if err != nil && n.ctx.Err() == nil {
			n.cfg.Log.Debug("sessions without an edge were not looked for", "err", err)
		}
	}
}

// seekForsaken finds edges that are gone and lists their dialled sessions as orphans; soon says that there may be another.
func (n *Node) seekForsaken(ctx context.Context) (soon bool, err error) {
	holders, err := n.cfg.Presence.Dials.Holders(ctx, n.holder)
	if err != nil {
		return false, err
	}
	silent, gone := map[presence.Holder]*absence{}, map[presence.Holder]struct{}{}
	for _, h := range holders {
		if h.Alive && h.Age < 2*n.renewalInterval() {
			continue
		}
		s := n.dials.silent[h.Holder]
		if s == nil {
			s = new(absence)
		}
		silent[h.Holder] = s
		if h.Alive && !n.isGone(ctx, h.Holder, s) {
			soon = soon || s.times > 0
			continue
		}
		gone[h.Holder] = struct{}{}
		if err := n.cfg.Presence.Dials.Forsaken(ctx, h.Holder); err != nil {
			return false, err
		}
	}
	n.dials.silent, n.dials.gone = silent, gone
	return soon, nil
}

// isGone looks once whether a holder is known to be gone that has left out renewals: see [Node.handedOver].
func (n *Node) isGone(ctx context.Context, h presence.Holder, s *absence) bool {
	seen, ok := n.checkLiveness(ctx, h)
	if !ok || seen.err != nil {
		return false
	}
	nobody := s.record(seen.asked)
	return !seen.alive || guard.Gone && nobody && seen.age >= 2*n.renewalInterval()
}

// adoptDue begins to adopt what is due.
func (n *Node) adoptDue(ctx context.Context) error {
	due, err := n.cfg.Presence.Dials.Orphans(ctx, adoptBatch)
	if err != nil {
		return err
	}
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	for _, o := range due {
		orphaned, held, err := n.isOrphan(ctx, o)
		if err != nil {
			return err
		}
		if held {
			if err := n.cfg.Presence.Dials.Adopted(ctx, o); err != nil {
				return err
			}
		}
		if !orphaned {
			continue
		}
		if err := n.adoptKept(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// adoptKept adopts an orphan in the background, unless another edge dials it, or this one has of late.
func (n *Node) adoptKept(ctx context.Context, o presence.Orphan) error {
	at := agora.ToAgent(o.Tenant, o.Agent)
	dialect, who, err := readVouched(o.Dial.By)
	if err != nil || n.dials.adopter(dialect) == nil || !n.dials.begin(at, o.Epoch, true) {
		return nil // for who can
	}
	kept, err := n.cfg.Presence.Dials.Keep(ctx, &o, keptFor)
	if err != nil || !kept {
		n.dials.end(at, o.Epoch, errAdopted)
		return err
	}
	n.background(func() {
		err := n.adopt(n.ctx, o, who)
		n.dials.end(at, o.Epoch, err)
		switch {
		case err == nil || errors.Is(err, errAdopted):
			err = n.cfg.Presence.Dials.Adopted(n.ctx, o)
		default:
			n.cfg.Log.Info("agent was not dialled, which others try too", "agent", o.Agent, "tenant", o.Tenant, "address", o.Dial.Address, "err", err)
			err = n.cfg.Presence.Dials.Left(n.ctx, o)
		}
		if err != nil && n.ctx.Err() == nil {
			n.cfg.Log.Debug("adoption was not noted", "agent", o.Agent, "err", err)
		}
	})
	return nil
}

// isOrphan reports whether a session has no edge any more, or is to have none, and whether a living one holds it.
func (n *Node) isOrphan(ctx context.Context, o presence.Orphan) (is, held bool, err error) {
	if _, gone := n.dials.gone[o.Holder]; o.Phase == presence.InGrace || gone || o.Offered && o.Holder != n.holder {
		return true, false, nil
	}
	if o.Holder == n.holder {
		return false, !o.Offered, nil
	}
	age, alive, err := n.cfg.Presence.Leases.Age(ctx, o.Holder)
	return err == nil && !alive, err == nil && alive && age < 2*n.renewalInterval(), err
}

// adopt has the door of its dialect dial an agent for a principal. errAdopted where somebody else goes on with the session.
func (n *Node) adopt(ctx context.Context, o presence.Orphan, who *Principal) error {
	dialect, _, err := readVouched(o.Dial.By)
	if err != nil {
		return err
	}
	door := n.dials.adopter(dialect)
	if door == nil {
		return agora.Errorf(agora.Unavailable, "this edge dials no agents of dialect %q", dialect)
	}
	a := &Actor{node: n, quota: n.limits.rates.Quota(o.Tenant)}
	a.principal.Store(who)
	if who.Tenant != o.Tenant || who.Name != o.Principal {
		return belongsElsewhere(o.Agent)
	}
	if err := errors.Join(a.Check(), a.mayBe(o.Agent)); err != nil {
		return agora.AsError(err)
	}
	slot, err := n.limits.shedder.Acquire()
	if err != nil {
		return err
	}
	orphan := &Orphan{Address: o.Dial.Address, Card: o.Card, Actor: a, seen: o, slot: slot}
	ctx, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	err = door.Adopt(ctx, orphan)
	if err == nil && !orphan.opened {
		err = agora.Errorf(agora.Unavailable, "its door has not opened the session")
	}
	if !orphan.opened {
		slot.Release()
	}
	return err
}

// Adopt has this edge adopt an agent's session at once, where no edge that lives holds it: for a door that hears from an agent whose session is not
// here. It returns nil once an edge holds the session, or where one does that can't be asked now. Errors: AGENT_NOT_FOUND where there is no session that
// an edge has dialled, UNAUTHORIZED, FORBIDDEN where it is another principal's, or its address may not be dialled from here, UNAVAILABLE. It may take as
// long as dialling, and a lease.
func (a *Actor) Adopt(ctx context.Context, id agora.AgentID) error {
	if err := errors.Join(a.Check(), a.mayBe(id)); err != nil {
		return agora.AsError(err)
	}
	n, who := a.node, a.Principal()
	at := agora.ToAgent(who.Tenant, id)
	for {
		o, is, err := n.cfg.Presence.Dials.Find(ctx, who.Tenant, id)
		switch {
		case err != nil:
			return agora.AsError(err)
		case !is:
			return agora.UnknownAgent(id)
		case o.Principal != who.Name:
			return notYours(id)
		case o.Phase == presence.Active && !n.hasLost(ctx, o):
			if err := ctx.Err(); err != nil {
				return agora.AsError(err)
			}
			return nil
		}
		if n.dials.begin(at, o.Epoch, false) {
			err := n.adopt(ctx, o, who)
			n.dials.end(at, o.Epoch, err)
			if err == nil || errors.Is(err, errAdopted) {
				return nil // the sweep finds it held
			}
			return agora.AsError(err)
		}
		if !pause.For(ctx, askAgain) { // it is under way
			return agora.AsError(ctx.Err())
		}
	}
}

// hasLost reports whether nobody is there who holds an active session.
func (n *Node) hasLost(ctx context.Context, o presence.Orphan) bool {
	if o.Holder == n.holder {
		return false
	}
	var s absence
	for {
		seen, ok := n.checkLiveness(ctx, o.Holder)
		switch {
		case !ok || seen.err != nil:
			return false
		case !seen.alive || s.record(seen.asked):
			return true // should it live, it hands over: see awaitHandover
		case s.times == 0:
			return false
		}
	}
}
