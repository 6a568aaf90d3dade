package admission

import (
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
)

// Owner is who holds something.
type Owner struct {
	Tenant    string
	Principal string        // empty where nobody has asked who it is: then each agent counts as a principal
	Agent     agora.AgentID // empty for what is of no agent in particular
	Of        agora.Address // whose share it is, of a resource of which everybody has a whole: see [CallsFor]
}

// Usage counts what agents hold at one edge, by agent, principal and tenant, and refuses what would be more than a
// level may hold. Its methods may be called at the same time, and don't block. They cost a lock and some look-ups,
// where something begins and where it ends.
type Usage struct {
	limits *LiveLimits
	pools  [resources]pools
}

// NewUsage returns a Usage of which nothing is held.
func NewUsage(limits *LiveLimits) *Usage { return &Usage{limits: limits} }

// Take counts n more of a resource for an owner, who owes a [Usage.Give] of them. RATE_LIMITED where that would be more
// than may be held.
func (u *Usage) Take(r Resource, o Owner, n int64) error {
	bound, p := u.limits.Load().Bound(r), &u.pools[r]
	p.mu.Lock()
	defer p.mu.Unlock()
	if level, refused := bound.Refuses(p.held(o), n); refused {
		p.refused[level].Add(1)
		return r.Refusal(level)
	}
	p.add(o, n)
	return nil
}

// Add counts n more for an owner whatever is held: of what has begun elsewhere, and continues here.
func (u *Usage) Add(r Resource, o Owner, n int64) {
	if n == 0 {
		return
	}
	p := &u.pools[r]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(o, n)
}

// Give counts n less.
func (u *Usage) Give(r Resource, o Owner, n int64) { u.Add(r, o, -n) }

// Held returns how much is held at each level of an owner.
func (u *Usage) Held(r Resource, o Owner) Held {
	p := &u.pools[r]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held(o)
}

// All returns how much of a resource is held by everybody.
func (u *Usage) All(r Resource) (n int64) {
	p := &u.pools[r]
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.of {
		n += of.whole
	}
	return n
}

// Tally adds up how much is held of a resource, by whom.
func (u *Usage) Tally(r Resource, t *Tally) {
	p := &u.pools[r]
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.of {
		for party, n := range of.principals {
			t.Add(party, n)
		}
	}
}

// Refused returns how often a level was refused more of a resource.
func (u *Usage) Refused(r Resource, l Level) int64 { return u.pools[r].refused[l].Load() }

// pools are what is held of one resource.
type pools struct {
	refused [Levels]atomic.Int64

	mu sync.Mutex              // guards the field below
	of map[agora.Address]*pool // by Owner.Of, which for most resources names nobody
}

// pool is what is held of one whole. What holds nothing has no entry.
type pool struct {
	whole      int64
	tenants    map[string]int64
	principals map[Owner]int64
	agents     map[agora.Address]int64
}

// party is the key of an owner's principal, or of an agent that counts as one; false for neither.
func (o Owner) party() (Owner, bool) {
	if o.Principal == "" {
		return Owner{Tenant: o.Tenant, Agent: o.Agent}, o.Agent != ""
	}
	return Owner{Tenant: o.Tenant, Principal: o.Principal}, true
}

// held returns what the levels of an owner hold; mu is held.
func (p *pools) held(o Owner) (h Held) {
	party, is := o.party()
	if !is {
		h[OfPrincipal] = -1
	}
	of := p.of[o.Of]
	if of == nil {
		return h
	}
	h[OfWhole], h[OfTenant] = of.whole, of.tenants[o.Tenant]
	if is {
		h[OfPrincipal] = of.principals[party]
	}
	if o.Agent != "" {
		h[OfAgent] = of.agents[agora.ToAgent(o.Tenant, o.Agent)]
	}
	return h
}

// add counts n more, or less; mu is held.
func (p *pools) add(o Owner, n int64) {
	of := p.of[o.Of]
	if of == nil {
		of = &pool{tenants: map[string]int64{}, principals: map[Owner]int64{}, agents: map[agora.Address]int64{}}
		if p.of == nil {
			p.of = map[agora.Address]*pool{}
		}
		p.of[o.Of] = of
	}
	of.whole += n
	count(of.tenants, o.Tenant, n)
	if party, is := o.party(); is {
		count(of.principals, party, n)
	}
	if o.Agent != "" {
		count(of.agents, agora.ToAgent(o.Tenant, o.Agent), n)
	}
	if of.whole == 0 {
		delete(p.of, o.Of)
	}
}

// count adds n to an entry, which it takes out where nothing is left.
func count[K comparable](m map[K]int64, k K, n int64) {
	if m[k] += n; m[k] == 0 {
		delete(m, k)
	}
}
