package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora/presence"
)

// Linked returns an actor that brings agents of a link here: its sessions are those of agents that are elsewhere. No rules bind it, and its credentials don't end. Each of its
// sessions makes room, at once, for whoever opens or registers its id here, and for the session of an older link: see [presence.Link.Principal]. Open returns AGENT_EXISTS where
// somebody has the id here, or is to find its mail under it.
func (n *Node) Linked(l presence.Link) *Actor {
	a := &Actor{node: n, tenant: n.tenants.of(l.Tenant)}
	a.principal.Store(&Principal{Name: l.Principal(), Tenant: l.Tenant, Any: true, link: true})
	return a
}

// HoldLink has this edge hold a link for a while, as [presence.Store.HoldLink] does.
func (n *Node) HoldLink(ctx context.Context, l presence.Link, lasts time.Duration, state string) (bool, error) {
	return n.cfg.Presence.HoldLink(ctx, l, n.holder, lasts, state)
}

// LeaveLink has this edge hold a link no more.
func (n *Node) LeaveLink(ctx context.Context, l presence.Link) error {
	return n.cfg.Presence.LeaveLink(ctx, l, n.holder)
}
