package approval

import (
	"slices"

	"github.com/agora-relay/agora"
)

// tenant is what one tenant has.
type tenant struct {
	boxes  map[string]*entry
	ids    map[string][]*entry                   // by the asker's own id
	to     map[agora.AgentID]map[*entry]struct{} // pending, by who is asked
	agents map[agora.AgentID]*usage              // what each asker has
	owners map[string]*usage                     // what each principal has, of what is known to be its own
	all    usage
}

// tenants are what the tenants have, by name. Guarded by replica.mu.
type tenants map[string]*tenant

// get returns a tenant's, which it makes where there is none; who adds nothing to it calls drop.
func (all tenants) get(name string) *tenant {
	t := all[name]
	if t == nil {
		t = &tenant{
			boxes: map[string]*entry{}, ids: map[string][]*entry{},
			to: map[agora.AgentID]map[*entry]struct{}{}, agents: map[agora.AgentID]*usage{}, owners: map[string]*usage{},
		}
		all[name] = t
	}
	return t
}

// drop forgets a tenant that has nothing.
func (all tenants) drop(name string) {
	if t := all[name]; t != nil && len(t.boxes) == 0 && len(t.agents) == 0 {
		delete(all, name)
	}
}

// find returns an approval; nil where there is none.
func (all tenants) find(tenant, box string) *entry {
	if t := all[tenant]; t != nil {
		return t.boxes[box]
	}
	return nil
}

// add adds an approval that is pending.
func (t *tenant) add(n *entry) {
	t.boxes[n.box] = n
	t.ids[n.ID] = append(t.ids[n.ID], n)
	if t.to[n.To] == nil {
		t.to[n.To] = map[*entry]struct{}{}
	}
	t.to[n.To][n] = struct{}{}
}

// endPending has an approval be pending no more.
func (t *tenant) endPending(n *entry) {
	if delete(t.to[n.To], n); len(t.to[n.To]) == 0 {
		delete(t.to, n.To)
	}
}

// remove forgets an approval that is not pending.
func (t *tenant) remove(n *entry) {
	delete(t.boxes, n.box)
	if t.ids[n.ID] = slices.DeleteFunc(t.ids[n.ID], func(x *entry) bool { return x == n }); len(t.ids[n.ID]) == 0 {
		delete(t.ids, n.ID)
	}
}
