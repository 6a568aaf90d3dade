package admission

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// RateLimiter limits by rate what agents say at one edge: each agent by itself, and all of a tenant together.
type RateLimiter struct {
	limits   *LiveLimits
	presence *presence.Store
	answer   time.Duration // how long presence has to count
	tenants  tenants
	meters   meters
}

// NewRateLimiter returns a limiter of which nobody has taken anything. The store counts what an agent says at all edges
// together, and has so long to answer.
func NewRateLimiter(limits *LiveLimits, store *presence.Store, answer time.Duration) *RateLimiter {
	r := &RateLimiter{limits: limits, presence: store, answer: answer}
	r.tenants.rates = r
	r.tenants.of(agora.DefaultTenant) // which is counted from the start
	return r
}

// Refill makes every bucket full, as other limits are in force; but for those of quotas, whose owners do so.
func (r *RateLimiter) Refill() {
	r.tenants.refill()
	r.meters.refill()
}

// Quota is what one connection may say. It is the connection's alone, unless it counts together with others.
type Quota struct {
	tenant *tenant
	own    atomic.Pointer[meter] // what the connection has said of late; nil for nothing
}

// Quota returns the quota of a connection of a tenant's.
func (r *RateLimiter) Quota(tenant string) Quota {
	return Quota{tenant: r.tenants.of(tenant)}
}

// Tenant returns the counters of the tenant, which go on counting.
func (q *Quota) Tenant() *TenantStats { return q.tenant.TenantStats }

// Count counts a message of n bytes that was taken.
func (q *Quota) Count(n int) {
	q.tenant.Messages.Add(1)
	q.tenant.Bytes.Add(int64(n))
}

// CountTogether has what the connection says count with all that is said so under an address at this edge. It is
// called before the connection says anything.
func (q *Quota) CountTogether(at agora.Address) { q.own.Store(q.tenant.rates.meters.get(at)) }

// Refill makes the connection's buckets full, as other limits are in force.
func (q *Quota) Refill() {
	if m := q.own.Load(); m != nil {
		m.refill()
	}
}

// Spend takes a message of n bytes, or nothing where one of the buckets lacks it: RATE_LIMITED.
func (q *Quota) Spend(n int) error { return q.spend(q.meter(), n) }

// Reserve takes a message of n bytes whatever is left, and returns how long it must wait.
func (q *Quota) Reserve(n int) time.Duration { return q.reserve(q.meter(), n) }

// SpendFor is Spend for what is said as an agent, but not by its connection: it counts with all that the agent says so at all edges, and with what it says at this one
// while presence can't count that.
func (q *Quota) SpendFor(ctx context.Context, at agora.Address, n int) error {
	l, m := q.tenant.rates.limits.Load(), q.tenant.rates.meters.get(at)
	if l.messages.perSecond <= 0 && l.bytes.perSecond <= 0 {
		return q.spendShared(l, n)
	}
	after, ok := m.allowance.take(ctx, q.tenant.rates, at, l, n)
	if !ok {
		return q.spend(m, n)
	}
	if after > 0 {
		return rateLimited("too much in too short a time", after)
	}
	err := q.spendShared(l, n)
	if err != nil {
		m.allowance.give(l, n)
	}
	return err
}

// ReserverFor returns a Reserve for what is said as an agent, but not by its connection: it counts with what the agent says so at this edge.
func (q *Quota) ReserverFor(at agora.Address) func(n int) time.Duration {
	m := q.tenant.rates.meters.get(at)
	return func(n int) time.Duration { return q.reserve(m, n) }
}

// meter returns the meter of what the connection says.
func (q *Quota) meter() *meter {
	if m := q.own.Load(); m != nil {
		return m
	}
	q.own.CompareAndSwap(nil, new(meter))
	return q.own.Load()
}

func (q *Quota) reserve(m *meter, n int) time.Duration {
	l, size := q.tenant.rates.limits.Load(), float64(n)
	own := max(m.messages.spend(l.messages, 1, true), m.bytes.spend(l.bytes, size, true))
	shared := max(q.tenant.messages.spend(l.tenantMessages, 1, true), q.tenant.bytes.spend(l.tenantBytes, size, true))
	if shared > 0 {
		q.tenant.Limited.Add(1)
	}
	return max(own, shared)
}

func (q *Quota) spend(m *meter, n int) error {
	l, size := q.tenant.rates.limits.Load(), float64(n)
	after := m.messages.spend(l.messages, 1, false)
	if after > 0 {
		return rateLimited("too much in too short a time", after)
	}
	if after = m.bytes.spend(l.bytes, size, false); after > 0 {
		m.messages.refund(l.messages, 1)
		return rateLimited("too much in too short a time", after)
	}
	err := q.spendShared(l, n)
	if err != nil {
		m.messages.refund(l.messages, 1)
		m.bytes.refund(l.bytes, size)
	}
	return err
}

// spendShared takes a message of n bytes from what the agents of the tenant may say at this edge.
func (q *Quota) spendShared(l *Effective, n int) error {
	after := q.tenant.messages.spend(l.tenantMessages, 1, false)
	if after == 0 {
		if after = q.tenant.bytes.spend(l.tenantBytes, float64(n), false); after == 0 {
			return nil
		}
		q.tenant.messages.refund(l.tenantMessages, 1)
	}
	q.tenant.Limited.Add(1)
	return rateLimited("the agents of this tenant say too much in too short a time", after)
}
