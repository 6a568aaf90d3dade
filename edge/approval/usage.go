package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
)

// usage is what an agent, a principal, a tenant or everybody has of the book.
type usage struct {
	pending int64
	asking  int64 // on their way to the book
	bytes   int64
}

// open is how many approvals are pending, or about to be.
func (u usage) open() int64 { return u.pending + u.asking }

// stored is how many bytes of the book they take, about.
func (u usage) stored() int64 { return u.bytes }

// plus adds more to u, and returns whether that leaves anything.
func (u *usage) plus(more usage) bool {
	u.pending, u.asking, u.bytes = u.pending+more.pending, u.asking+more.asking, u.bytes+more.bytes
	return *u != usage{}
}

// plus adds more to an entry, which it takes out where nothing is left.
func plus[K comparable](m map[K]*usage, k K, more usage) {
	u := m[k]
	if u == nil {
		u = new(usage)
		m[k] = u
	}
	if !u.plus(more) {
		delete(m, k)
	}
}

// use adds to what an agent has of the book, its principal, its tenant and everybody. The caller holds mu, and calls
// tenants.drop where it takes away.
func (r *replica) use(tenant string, agent agora.AgentID, owner string, more usage) {
	t := r.tenants.get(tenant)
	plus(t.agents, agent, more)
	if owner != "" {
		plus(t.owners, owner, more)
	}
	t.all.plus(more)
	r.used.plus(more)
}

// heldBy is what each level has of the book; the principal has none where it has no name.
type heldBy [admission.Levels]*usage

// held returns what the levels of an approval have of the book. The caller holds mu.
func (r *replica) held(q *Approval) (h heldBy) {
	none := new(usage)
	h = heldBy{none, none, none, &r.used}
	if q.Owner == "" {
		h[admission.OfPrincipal] = nil
	}
	t := r.tenants[q.Tenant]
	if t == nil {
		return h
	}
	h[admission.OfTenant] = &t.all
	if u := t.agents[q.Agent]; u != nil {
		h[admission.OfAgent] = u
	}
	if u := t.owners[q.Owner]; u != nil {
		h[admission.OfPrincipal] = u
	}
	return h
}

// of returns how much of something the levels have.
func (h heldBy) of(what func(usage) int64) (held admission.Held) {
	for l, u := range h {
		if held[l] = -1; u != nil {
			held[l] = what(*u)
		}
	}
	return held
}

// ownerOf returns a principal's name as records have it: a hash of one that is long.
func ownerOf(name string) string {
	const most, hashed = 128, "sha256:"
	if len(name) <= most && !strings.HasPrefix(name, hashed) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hashed + hex.EncodeToString(sum[:])
}
