package edge

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Actor is an authenticated party. It holds no state, so any edge can serve
// it: only a live connection needs a [Session].
type Actor struct {
	node      *Node
	principal Principal
}

// Authenticate makes an Actor of a token, which may be empty. UNAUTHORIZED
// when the verifier does not take it.
func (n *Node) Authenticate(ctx context.Context, token string) (*Actor, error) {
	p, err := n.cfg.Auth.Authenticate(ctx, token)
	if err != nil {
		return nil, err
	}
	if p.Tenant == "" {
		p.Tenant = agora.DefaultTenant
	}
	return &Actor{node: n, principal: p}, nil
}

// Agents returns the directory: the agents of the tenant that have a session, sorted by id.
func (a *Actor) Agents(ctx context.Context) ([]agora.Agent, error) {
	return a.node.cfg.Presence.Agents(ctx, a.principal.Tenant)
}

// Spaces returns the tenant's spaces, sorted by name.
func (a *Actor) Spaces(ctx context.Context) ([]presence.Space, error) {
	return a.node.hub.List(ctx, a.principal.Tenant)
}
