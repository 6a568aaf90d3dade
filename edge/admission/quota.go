package admission

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// RateLimiter limits by rate what agents say at one edge: each agent by itself, all of a principal together, and all of
// a tenant.
type RateLimiter struct {
	limits     *LiveLimits
	presence   *presence.Store
	answer     time.Duration // how long presence has to count
	tenants    tenants
	meters     meters // of agents, and of who speaks by requests
	principals meters
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
	r.principals.refill()
}

// Quota is what one connection may say. It is the connection's alone, unless it counts together with others.
type Quota struct {
	tenant    *tenant
	principal agora.Address         // as an address; nobody's where it has no name
	own       atomic.Pointer[meter] // what the connection has said recently; nil for nothing
	together  atomic.Pointer[meter] // of the principal, where that is limited
}

// Quota returns the quota of a connection of a principal's, which has no name where nobody has asked who it is.
func (r *RateLimiter) Quota(tenant, principal string) Quota {
	return Quota{tenant: r.tenants.of(tenant), principal: agora.ToAgent(tenant, agora.AgentID(principal))}
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

// SpendFor is Spend for what is said as an agent, but not by its connection: it counts with all that the agent says so
// at all edges, and with what it says at this one while presence can't count that.
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
		q.tenant.Limited[OfAgent].Add(1)
		return rateLimited("too much in too short a time", after)
	}
	err := q.spendShared(l, n)
	if err != nil {
		m.allowance.give(l, n)
	}
	return err
}

// ReserverFor returns a Reserve for what is said as an agent, but not by its connection: it counts with what the agent
// says so at this edge.
func (q *Quota) ReserverFor(at agora.Address) func(n int) time.Duration {
	m := q.tenant.rates.meters.get(at)
	return func(n int) time.Duration { return q.reserve(m, n) }
}

// besideMark begins the name under which a meter counts what an agent asks beside what it says.
const besideMark = "\x00beside/"

// SpendBeside takes what an agent asks of the cluster beside what it says to others: signs of life, sessions, cards. It
// counts with all that the agent asks so at this edge, as fast as it may speak, and among what its principal and its
// tenant say. RATE_LIMITED.
func (q *Quota) SpendBeside(at agora.Address, n int) error {
	if !q.tenant.rates.limits.Load().rated {
		return nil
	}
	return q.spend(q.beside(at), n)
}

// ReserveBeside is SpendBeside for what is to be let in, and slowed: it returns how long that must wait.
func (q *Quota) ReserveBeside(at agora.Address, n int) time.Duration {
	if !q.tenant.rates.limits.Load().rated {
		return 0
	}
	return q.reserve(q.beside(at), n)
}

func (q *Quota) beside(at agora.Address) *meter {
	at.Agent = besideMark + at.Agent
	return q.tenant.rates.meters.get(at)
}

// ReserveFor is Reserve for what is said as an agent, but not by its connection: it counts with what the agent says so
// at this edge.
func (q *Quota) ReserveFor(at agora.Address, n int) time.Duration {
	if !q.tenant.rates.limits.Load().rated {
		return 0
	}
	return q.reserve(q.tenant.rates.meters.get(at), n)
}

// meter returns the meter of what the connection says.
func (q *Quota) meter() *meter {
	if m := q.own.Load(); m != nil {
		return m
	}
	q.own.CompareAndSwap(nil, new(meter))
	return q.own.Load()
}

// shared returns the meter of the principal; nil where that is not limited.
func (q *Quota) shared(l *Effective) *meter {
	if q.principal.Agent == "" || l.principalMessages.perSecond <= 0 && l.principalBytes.perSecond <= 0 {
		return nil
	}
	m := q.together.Load()
	if m == nil || m.forgotten.Load() {
		m = q.tenant.rates.principals.get(q.principal)
		q.together.Store(m)
	}
	return m
}

func (q *Quota) reserve(m *meter, n int) time.Duration {
	l, size := q.tenant.rates.limits.Load(), float64(n)
	longest := q.slowed(OfAgent, m.reserve(l.messages, l.bytes, size))
	if p := q.shared(l); p != nil {
		longest = max(longest, q.slowed(OfPrincipal, p.reserve(l.principalMessages, l.principalBytes, size)))
	}
	return max(longest, q.slowed(OfTenant, q.tenant.reserve(l.tenantMessages, l.tenantBytes, size)))
}

// slowed counts that the rate of a level has something wait, where it does, and returns how long.
func (q *Quota) slowed(l Level, wait time.Duration) time.Duration {
	if wait > 0 {
		q.tenant.Limited[l].Add(1)
	}
	return wait
}

func (q *Quota) spend(m *meter, n int) error {
	l, size := q.tenant.rates.limits.Load(), float64(n)
	if after := m.spend(l.messages, l.bytes, size); after > 0 {
		q.tenant.Limited[OfAgent].Add(1)
		return rateLimited("too much in too short a time", after)
	}
	err := q.spendShared(l, n)
	if err != nil {
		m.refund(l.messages, l.bytes, size)
	}
	return err
}

// spendShared takes a message of n bytes from what the agents of the principal, and those of the tenant, may say at
// this edge.
func (q *Quota) spendShared(l *Effective, n int) error {
	p, size := q.shared(l), float64(n)
	if p != nil {
		if after := p.spend(l.principalMessages, l.principalBytes, size); after > 0 {
			q.tenant.Limited[OfPrincipal].Add(1)
			return rateLimited("the agents of this principal say too much in too short a time", after)
		}
	}
	after := q.tenant.spend(l.tenantMessages, l.tenantBytes, size)
	if after == 0 {
		return nil
	}
	if p != nil {
		p.refund(l.principalMessages, l.principalBytes, size)
	}
	q.tenant.Limited[OfTenant].Add(1)
	return rateLimited("the agents of this tenant say too much in too short a time", after)
}

// tokenBucket holds tokens that come at a rate and are spent by messages. It is one
// number, the moment from which on it is full: so the many that share one take no
// lock, and a rate may change at any time. The zero value is full.
type tokenBucket struct{ full atomic.Int64 } // in ticks; 0 for full

// rate is how fast a bucket fills and how much it holds.
type rate struct{ perSecond, burst float64 }

// rateOf returns a rate with some seconds' worth of burst, which is at least least. No rate is no limit.
func rateOf(perSecond, seconds, least float64) rate {
	return rate{perSecond, max(least, perSecond*seconds)}
}

// spend takes n tokens, or as many as the bucket holds at most. It returns 0, or
// after how long they are there: then they are taken only where the caller waits for them.
func (b *tokenBucket) spend(r rate, n float64, waits bool) time.Duration {
	if r.perSecond <= 0 {
		return 0
	}
	cost := int64(min(n, r.burst) / r.perSecond * float64(time.Second))
	room := int64(r.burst / r.perSecond * float64(time.Second))
	for {
		now, full := agora.Ticks(), b.full.Load()
		next := full + cost
		if full == 0 || full < now {
			next = now + cost
		}
		after := time.Duration(max(0, next-now-room))
		if after > 0 && !waits || b.full.CompareAndSwap(full, next) {
			return after
		}
	}
}

// refund puts tokens back that were spent in vain.
func (b *tokenBucket) refund(r rate, n float64) {
	if r.perSecond > 0 && b.full.Load() != 0 {
		b.full.Add(-int64(min(n, r.burst) / r.perSecond * float64(time.Second)))
	}
}

// refill makes the bucket full: what was spent at another rate says nothing at this one.
func (b *tokenBucket) refill() { b.full.Store(0) }

// buckets are those of one who speaks: of messages, and of their bytes. The zero value is full.
type buckets struct{ messages, bytes tokenBucket }

// spend takes a message of so many bytes, or nothing: then it returns after how long both buckets may have it.
func (b *buckets) spend(messages, bytes rate, size float64) time.Duration {
	after := b.messages.spend(messages, 1, false)
	if after > 0 {
		return after
	}
	if after = b.bytes.spend(bytes, size, false); after > 0 {
		b.messages.refund(messages, 1)
	}
	return after
}

// reserve takes it whatever is left, and returns how long it must wait.
func (b *buckets) reserve(messages, bytes rate, size float64) time.Duration {
	return max(b.messages.spend(messages, 1, true), b.bytes.spend(bytes, size, true))
}

// refund puts back what was spent in vain.
func (b *buckets) refund(messages, bytes rate, size float64) {
	b.messages.refund(messages, 1)
	b.bytes.refund(bytes, size)
}

// refill makes both buckets full.
func (b *buckets) refill() {
	b.messages.refill()
	b.bytes.refill()
}
