package edge

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/presence"
)

// Actor is an authenticated party. It holds no state but who it is, so any
// edge can serve it: only a live connection needs a [Session].
type Actor struct {
	node      *Node
	principal atomic.Pointer[Principal] // replaced as a whole when its credentials are renewed
	granted   atomic.Pointer[grant]     // what that may do by the rules; nil where there are none
	quota     admission.Quota           // what it may say
}

// Principal returns who the actor is, and what it may do now. It is not to be changed.
func (a *Actor) Principal() *Principal { return a.principal.Load() }

// Authenticate makes an Actor of credentials, which may be empty. UNAUTHORIZED
// when the verifier does not take them, UNAVAILABLE when it can't tell now.
func (n *Node) Authenticate(ctx context.Context, c Credentials) (*Actor, error) {
	p, err := n.credentials.identify(ctx, c)
	if err != nil {
		return nil, err
	}
	return n.actor(p), nil
}

// actor returns one for a principal.
func (n *Node) actor(p *Principal) *Actor {
	a := &Actor{node: n, quota: n.limits.rates.Quota(p.Tenant)}
	a.principal.Store(p)
	return a
}

// Spaces returns the tenant's spaces, sorted by name. FORBIDDEN, RATE_LIMITED.
func (a *Actor) Spaces(ctx context.Context) ([]presence.Space, error) {
	if err := errors.Join(a.maySee(), a.quota.Spend(0)); err != nil {
		return nil, agora.AsError(err)
	}
	return a.node.hub.List(ctx, a.Principal().Tenant)
}
