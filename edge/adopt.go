package edge

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// A session whose connection an edge has dialled ([Hello.Dialled]) can't come back by itself when its edge dies or
// drains: another edge adopts it, which dials its agent again. Every edge looks for such sessions, if it has a door of
// their dialect. Whoever can dial the agent claims the session under the epoch that it has seen: of several the first
// one has it, as the others find another epoch.

// Adopter is a door for agents that an edge dials.
type Adopter interface {
	// Adopt dials o.Address by [Node.Dialer] and opens the session by o.Open, whose error it returns as it is. It ends
	// with ctx. The session is the door's then, as one that it has opened by itself. It may be called for many agents
	// at the same time.
	Adopt(ctx context.Context, o *Orphan) error
}

// Adopts has the node adopt sessions of a dialect through a door, until the node is closed. It is called once for a
// dialect.
func (n *Node) Adopts(dialect string, door Adopter) {
	if n.dials.adoptBy(dialect, door) {
		n.owner.LookAfterDialled()
	}
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

// Open continues with the session through a connection: as [Actor.Open] with what o knows of the session, and its place
// in what the edge counts. Where it fails, as another edge was faster, the connection is to be closed. From h it takes
// what the door says of the connection; its card, unless that is to be another one, and its principal are as they were.
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

// Admission is the place of the session's connection in what the edge counts. Once the session is open the door owes a
// call of Release.
func (o *Orphan) Admission() Admission { return Admission{Actor: o.Actor, slot: o.slot} }

// adoptTime bounds dialling, and the claim.
const adoptTime = 10 * time.Second

// can reports whether this edge has a door that dials an agent.
func (d *dials) can(o presence.Orphan) bool {
	dialect, _, err := readVouched(o.Dial.By)
	return err == nil && d.adopter(dialect) != nil
}

// adopt has the door of its dialect dial an agent for an actor. ErrAdopted where somebody else continues with the
// session.
func (d *dials) adopt(ctx context.Context, o presence.Orphan, a *Actor) error {
	dialect, _, err := readVouched(o.Dial.By)
	if err != nil {
		return err
	}
	door := d.adopter(dialect)
	if door == nil {
		return agora.Errorf(agora.Unavailable, "this edge dials no agents of dialect %q", dialect)
	}
	if who := a.Principal(); who.Tenant != o.Tenant || who.Name != o.Principal {
		return ownership.BelongsElsewhere(o.Agent)
	}
	if err := errors.Join(a.Check(), a.mayBe(o.Agent)); err != nil {
		return agora.AsError(err)
	}
	slot, err := a.node.limits.Shedder.Acquire()
	if err != nil {
		return err
	}
	if err := slot.Own(a.Owner(o.Agent)); err != nil {
		slot.Release()
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

// Adopt has this edge adopt an agent's session at once, where no edge that lives holds it: for a door that hears from
// an agent whose session is not here. It returns nil once an edge holds the session, or where one does that can't be
// asked now. Errors: AGENT_NOT_FOUND where there is no session that an edge has dialled, UNAUTHORIZED, FORBIDDEN where
// it is another principal's, or its address may not be dialled from here, UNAVAILABLE. It may take as long as dialling,
// and a lease.
func (a *Actor) Adopt(ctx context.Context, id agora.AgentID) error {
	if err := errors.Join(a.Check(), a.mayBe(id)); err != nil {
		return agora.AsError(err)
	}
	n, who := a.node, a.Principal()
	for {
		o, is, err := n.cfg.Presence.Dials.Find(ctx, who.Tenant, id)
		switch {
		case err != nil:
			return agora.AsError(err)
		case !is:
			return agora.UnknownAgent(id)
		case o.Principal != who.Name:
			return notYours(id)
		case o.Phase == presence.Active && !n.owner.HasLost(ctx, o):
			if err := ctx.Err(); err != nil {
				return agora.AsError(err)
			}
			return nil
		}
		if begun, err := n.owner.AdoptBy(o, func() error { return n.dials.adopt(ctx, o, n.actor(who)) }); begun {
			if err == nil || errors.Is(err, ownership.ErrAdopted) {
				return nil // the sweep finds it held
			}
			return agora.AsError(err)
		}
		if !pause.For(ctx, ownership.AskAgain) { // it is under way
			return agora.AsError(ctx.Err())
		}
	}
}
