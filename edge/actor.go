package edge

import (
	"context"

	"github.com/agora-relay/agora/presence"
)

// Actor is an authenticated party. It holds no state but who it is, so any
// edge can serve it: only a live connection needs a [Session].
type Actor struct {
	node *Node
	authority
}

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
	a := &Actor{node: n, authority: authority{credentials: &n.credentials, quota: n.limits.rates.Quota(p.Tenant, p.Name)}}
	a.principal.Store(p)
	return a
}

// Speaker returns an actor that may nothing, as whose counts what an agent of a tenant says that nobody has asked who
// it is.
func (n *Node) Speaker(tenant string) *Actor { return n.actor(&Principal{Tenant: tenant}) }

// Spaces returns the tenant's spaces, sorted by name. FORBIDDEN, RATE_LIMITED.
func (a *Actor) Spaces(ctx context.Context) ([]presence.Space, error) {
	if err := a.mayLook(); err != nil {
		return nil, err
	}
	return a.node.hub.List(ctx, a.Principal().Tenant)
}
