package admission

import (
	"sync"
	"sync/atomic"
)

// TenantStats counts what the agents of one tenant do at this edge. All fields may be read at any time.
type TenantStats struct {
	Sessions atomic.Int64 // held now
	Messages atomic.Int64 // taken from its agents, parts of streams included
	Bytes    atomic.Int64 // of their bodies
	Refused  atomic.Int64 // refused by policy

	Limited [Levels]atomic.Int64 // refused or slowed by the rate of an agent, of a principal, or of the tenant
}

// tenant is what the sessions of one tenant at this edge share.
type tenant struct {
	*TenantStats // of its own, or shared with others
	buckets
	rates *RateLimiter
}

// tenants are those that have been here. Nobody but who signs tokens can make one up.
type tenants struct {
	rates  *RateLimiter // that they are limited by
	mu     sync.Mutex   // guards the fields below
	known  map[string]*tenant
	others TenantStats
}

// refill makes every bucket full.
func (t *tenants) refill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, known := range t.known {
		known.refill()
	}
}

// OtherTenants is what stands for all tenants beyond the first [CountedTenants] together.
const OtherTenants = "(others)"

// CountedTenants is how many tenants are counted each for itself.
const CountedTenants = 100

// of returns a tenant, making it where it is missing.
func (t *tenants) of(name string) *tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[name]; known != nil {
		return known
	}
	fresh := &tenant{TenantStats: &t.others, rates: t.rates}
	if len(t.known) < CountedTenants && name != OtherTenants {
		fresh.TenantStats = new(TenantStats)
	}
	if t.known == nil {
		t.known = map[string]*tenant{}
	}
	t.known[name] = fresh
	return fresh
}

// Tenants returns the counters of each tenant that has been at this edge, by
// its name; those beyond the first [CountedTenants] share one entry. They go on counting.
func (r *RateLimiter) Tenants() map[string]*TenantStats {
	r.tenants.mu.Lock()
	defer r.tenants.mu.Unlock()
	stats := map[string]*TenantStats{}
	for name, t := range r.tenants.known {
		if t.TenantStats == &r.tenants.others {
			name = OtherTenants
		}
		stats[name] = t.TenantStats
	}
	return stats
}
