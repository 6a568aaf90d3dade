// Package edge is one agent's session, whatever its door: who it is, what it
// says and what it gets; and the node that holds the sessions of one edge.
package edge

import (
	"context"
	"hash/maphash"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/spaces"
)

// Node is one edge's core: its lease, its sessions, and what it does for the
// cluster. Its methods may be called at the same time.
type Node struct {
	lifetime
	cfg         Config
	credentials credentials
	limits      limiters
	screens     screens
	approvals   approvals
	hub         *spaces.Hub
	directory   *directory.Directory
	relay       *relay.Relay
	calls       *call.Registry
	owner       *ownership.Owner
	edges       edges
	acts        acts
	answers     answers
	sessions    sessionTable
	dials       dials
	wheel       *Wheel
	tickets     tickets
	seed        maphash.Seed // of the hashes of callers
	stats       counters
}

// Config returns the settings, defaults filled in.
func (n *Node) Config() Config { return n.cfg }

// Ready returns nil while the node can serve, else what is missing.
func (n *Node) Ready() error {
	switch {
	case n.draining.Load():
		return agora.Errorf(agora.Unavailable, "the edge is draining")
	case !n.cfg.Broker.Connected():
		return agora.Errorf(agora.Unavailable, "the log can't be reached")
	}
	if _, ok := n.owner.Lease().Valid(); !ok {
		return agora.Errorf(agora.Unavailable, "the edge's lease has run out: presence can't be reached")
	}
	return nil
}

// Restores has restore called whenever presence may have lost what it knew, before it is taken for whole again: it writes once more what its door
// keeps there. Its error has the node call it again. It may be called at any time until the node is closed, by one goroutine at a time.
func (n *Node) Restores(restore func(context.Context) error) { n.owner.Restores(restore) }

// Reap ends a session for good that is ending, whichever edge had it. It returns when the session is over; nil also where somebody else has ended it.
func (n *Node) Reap(ctx context.Context, tenant string, id agora.AgentID) error {
	return n.owner.Reap(ctx, tenant, id, false)
}
