package approval

import (
	"cmp"
	"slices"
	"time"

	"github.com/agora-relay/agora"
)

// synced returns why the replica does not have all that the book has; nil where it has.
func (r *replica) synced() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.failed
}

// progress returns how far the book was read, and what is closed when it was read on.
func (r *replica) progress() (upTo uint64, looked <-chan struct{}) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.upTo, r.looked
}

// find returns an approval; nil where there is none.
func (r *replica) find(tenant, box string) *entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tenants.find(tenant, box)
}

// current returns n as it stands.
func (r *replica) current(n *entry) Approval {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return *n.Approval
}

// known returns an approval as it stands.
func (r *replica) known(tenant, box string) (Approval, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if n := r.tenants.find(tenant, box); n != nil {
		return *n.Approval, true
	}
	return Approval{}, false
}

// outcome returns n where it is decided, else what is closed when it may be.
func (r *replica) outcome(n *entry) (Approval, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case n.State != Pending:
		return *n.Approval, nil, nil
	case n.gone:
		return Approval{}, nil, errLost
	case n.changed == nil:
		n.changed = make(chan struct{})
	}
	return Approval{}, n.changed, nil
}

// asker returns who has asked under an id, and how many have.
func (r *replica) asker(tenant, id string) (agent agora.AgentID, n int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t := r.tenants[tenant]
	if t == nil || len(t.ids[id]) == 0 {
		return "", 0
	}
	return t.ids[id][0].Agent, len(t.ids[id])
}

// list returns a tenant's approvals, those asked first first; more says that there are others.
func (r *replica) list(tenant string, f *Filter) (all []Approval, more bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	first, there := slices.BinarySearchFunc(r.all, f.After, func(n *entry, seq uint64) int { return cmp.Compare(n.opened.Seq, seq) })
	if there {
		first++
	}
	for _, n := range r.all[first:] {
		if n.Tenant != tenant || !f.Matches(n.Approval) {
			continue
		}
		if len(all) == f.Most {
			return all, true
		}
		all = append(all, *n.Approval)
	}
	return all, false
}

// nextDue returns when the next approval is to expire; false where none is pending.
func (r *replica) nextDue() (time.Time, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.deadlines.next()
}

// due returns an approval that is to expire; nil where none is due.
func (r *replica) due(now time.Time) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deadlines.due(now)
}

// pendingFor returns what an agent is asked for, at most 1,000, in no order.
func (r *replica) pendingFor(tenant string, to agora.AgentID) (all []Approval) {
	if r.inState(Pending).Load() == 0 {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if t := r.tenants[tenant]; t != nil {
		for n := range t.to[to] {
			if all = append(all, *n.Approval); len(all) == mostListed {
				break
			}
		}
	}
	return all
}

// isPending reports whether an approval is pending.
func (r *replica) isPending(tenant string, asker, to agora.AgentID, id string) bool {
	if r.inState(Pending).Load() == 0 {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	t := r.tenants[tenant]
	if t == nil {
		return false
	}
	for _, n := range t.ids[id] {
		if n.State == Pending && n.Agent == asker && n.To == to {
			return true
		}
	}
	return false
}
