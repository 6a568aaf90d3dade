package edge

import (
	"github.com/agora-relay/agora/presence"
)

// Linked returns an actor that brings agents of a link here: its sessions are those of agents that are elsewhere. No rules bind it, and its credentials don't end. Each of its
// sessions makes room, at once, for whoever opens or registers its id here, and for the session of an older link: see [presence.Link.Principal]. Open returns AGENT_EXISTS where
// somebody has the id here, or is to find its mail under it.
func (n *Node) Linked(l presence.Link) *Actor {
	return n.actor(&Principal{Name: l.Principal(), Tenant: l.Tenant, Any: true, link: true})
}
