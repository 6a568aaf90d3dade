package edge

import (
	"context"
	"net/netip"

	"github.com/agora-relay/agora/edge/admission"
)

// Entrance lets connections in, whatever their door. Its fields don't change once it is used.
type Entrance struct {
	Connections  *admission.ConnLimiter
	Shedder      *admission.Shedder
	Authenticate func(context.Context, Credentials) (*Actor, error)
}

// Admission is a connection that was let in, or a request whose answer lasts: it counts for its address, its
// principal and the edge until Release. Its copies are the same admission.
type Admission struct {
	Actor  *Actor // who it is
	slot   *admission.Slot
	permit *admission.Permit
}

// Admit lets in what comes from an address with credentials, by the word of the edge's limits and of its verifier; what
// costs next to nothing to refuse is asked first. It blocks for as long as the verifier does. RATE_LIMITED,
// UNAVAILABLE, UNAUTHORIZED. On success the caller owes a call of Release.
func (n *Node) Admit(ctx context.Context, from netip.Addr, c Credentials) (Admission, error) {
	return n.limits.Admit(ctx, from, c)
}

// AdmitBy is [Node.Admit] of what presents its credentials only when it has counted for its address: present returns
// them, and may block. Its error refuses.
func (n *Node) AdmitBy(ctx context.Context, from netip.Addr, present func() (Credentials, error)) (Admission, error) {
	return n.limits.AdmitBy(ctx, from, present)
}

// Admit is [Node.Admit].
func (e *Entrance) Admit(ctx context.Context, from netip.Addr, c Credentials) (Admission, error) {
	return e.AdmitBy(ctx, from, func() (Credentials, error) { return c, nil })
}

// AdmitBy is [Node.AdmitBy]. Among the edge's connections it counts once its credentials are good: strangers take no
// place there.
func (e *Entrance) AdmitBy(ctx context.Context, from netip.Addr, present func() (Credentials, error)) (_ Admission, err error) {
	var a Admission
	defer func() {
		if err != nil {
			a.Release()
		}
	}()
	if a.permit, err = e.Connections.Acquire(from); err != nil {
		return Admission{}, err
	}
	if err = e.Shedder.MayEnter(); err != nil {
		return Admission{}, err
	}
	c, err := present()
	if err != nil {
		return Admission{}, err
	}
	if a.Actor, err = e.Authenticate(ctx, c); err != nil {
		return Admission{}, err
	}
	if a.slot, err = e.Shedder.Acquire(); err != nil {
		return Admission{}, err
	}
	if err = a.Actor.countConnection(a.permit, a.slot); err != nil {
		return Admission{}, err
	}
	return a, nil
}

// From returns the address that it comes from, by the word of trusted proxies; an invalid one after Release, and where
// the edge has made the connection.
func (a Admission) From() netip.Addr {
	if a.permit == nil {
		return netip.Addr{}
	}
	return a.permit.From()
}

// Slot is its place among the edge's connections; nil where the edge has made the connection.
func (a Admission) Slot() *admission.Slot { return a.slot }

// Attach says which connection was let in: from now on what that holds is counted, and it may be closed for it.
func (a Admission) Attach(c admission.Sheddable) { a.slot.Attach(c) }

// MarkActive has the connection sampled until it holds nothing and is not at work. A connection calls it once it has
// begun to work, or holds something.
func (a Admission) MarkActive() { a.slot.MarkActive() }

// Share returns how much of its usual bound a queue for it may hold, in parts of [admission.FullShare].
func (a Admission) Share() int { return a.slot.Share() }

// Shedding reports whether it is to be given less than it asks for.
func (a Admission) Shedding() bool { return a.slot.Shedding() }

// Release has it counted no more. Idempotent; nothing where nobody was admitted.
func (a Admission) Release() {
	if a.slot != nil {
		a.slot.Release()
	}
	if a.permit != nil {
		a.permit.Release()
	}
}

// Overloaded is why a connection is closed that is shed. Its door closes it so when it is told to
// [admission.Sheddable.Shed].
var Overloaded = Reason{Cause: Shed, Text: "the edge holds more than it can: try again later"}
