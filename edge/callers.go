package edge

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/agora-relay/agora"
)

// callers are the last agents that have said something to this one, by hashes that nobody outside can foretell.
type callers struct {
	mu   sync.Mutex // guards the fields below
	at   [64]uint64
	next uint8
}

// add adds a caller, unless it was the last one.
func (c *callers) add(h uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.at); c.at[(int(c.next)+n-1)%n] != h {
		c.at[c.next] = h
		c.next = (c.next + 1) % uint8(n)
	}
}

func (c *callers) has(h uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.at[:], h)
}

// heardFrom notes who has said something, so that it may be answered even if it has left meanwhile.
func (r authorizer) heardFrom(id agora.AgentID) {
	if r.rights.callers.Load() == nil {
		r.rights.callers.CompareAndSwap(nil, new(callers))
	}
	r.rights.callers.Load().add(maphash.String(r.node.seed, string(id)))
}

// hasAsked tells whether an agent has said something to this one: of late, or in the session that it has now.
func (r authorizer) hasAsked(ctx context.Context, id agora.AgentID) (bool, error) {
	if c := r.rights.callers.Load(); c != nil && c.has(maphash.String(r.node.seed, string(id))) {
		return true, nil
	}
	asked, err := r.node.cfg.Presence.Addressees.WroteTo(ctx, r.claim.Tenant, id, r.address())
	if err != nil {
		return false, agora.AsError(err)
	}
	if asked {
		r.heardFrom(id)
	}
	return asked, nil
}
