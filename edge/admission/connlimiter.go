package admission

import (
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

// ConnLimiter limits connections by where they come from and whose they are, whatever
// their door: so many handshakes a second, so many connections at once. Addresses of IPv6 count by their /64, as
// the one who has one has all of it. What it keeps of handshakes does not grow.
type ConnLimiter struct {
	limits     *LiveLimits
	handshakes tokenBucket // of all
	perAddress addressBuckets
	arrivals   addressBuckets // connections, whether anything is asked over them or not
	count      ConnLimiterStats

	mu         sync.Mutex // guards the fields below
	addresses  map[netip.Addr]int
	principals map[principalKey]*principalConns
	tenants    map[string]int64 // connections of the principals of each
	named      int64            // of all principals
}

// ConnLimiterStats counts the connections that a ConnLimiter refused. All fields may be read at any time.
type ConnLimiterStats struct {
	Handshakes atomic.Int64 // more of them a second than the edge takes
	PerIP      atomic.Int64 // from one address: handshakes, or connections
	Principals atomic.Int64 // connections of one principal
}

// principalKey names the principal whose connections are counted together.
type principalKey struct{ tenant, name string }

// principalConns is the connections of one principal.
type principalConns struct {
	key     principalKey
	n       int
	details any // of the connection that came last: most often those of all
}

// NewConnLimiter returns a limiter without connections.
func NewConnLimiter(limits *LiveLimits) *ConnLimiter {
	return &ConnLimiter{limits: limits, perAddress: newAddressBuckets(), arrivals: newAddressBuckets(), addresses: map[netip.Addr]int{}, principals: map[principalKey]*principalConns{}, tenants: map[string]int64{}}
}

// Stats returns the counters. They go on counting.
func (c *ConnLimiter) Stats() *ConnLimiterStats { return &c.count }

// Refill makes every bucket full, as other limits are in force.
func (c *ConnLimiter) Refill() {
	c.handshakes.refill()
	c.perAddress.refill()
	c.arrivals.refill()
}

// arrivalsPart is how many times more connections than handshakes may come from one address: a client that is beyond
// limits.handshakes-per-ip is to hear so.
const arrivalsPart = 4

// arrive takes a connection from a counted address that has asked for nothing yet. RATE_LIMITED when there are too many
// a second.
func (c *ConnLimiter) arrive(counted netip.Addr) error {
	r := c.limits.Load().handshakesPerIP
	if after := c.arrivals.spend(counted, rate{arrivalsPart * r.perSecond, arrivalsPart * r.burst}); after > 0 {
		c.count.PerIP.Add(1)
		return rateLimited("too many connections a second from this address", after)
	}
	return nil
}

// tooMany reports whether an address has as many connections as it may.
func (c *ConnLimiter) tooMany(n int) bool {
	most := c.limits.Load().PerIP
	return most > 0 && n >= most
}

// Permit is a connection that a ConnLimiter counts.
type Permit struct {
	limiter *ConnLimiter
	from    netip.Addr      // invalid after Release
	of      *principalConns // nil after Release, or where it is not counted
}

// Acquire takes a handshake from an address. RATE_LIMITED when there are too many
// handshakes, or too many connections from there. The caller owes a call of Release.
func (c *ConnLimiter) Acquire(from netip.Addr) (*Permit, error) {
	l, counted := c.limits.Load(), countedAddress(from)
	if after := c.perAddress.spend(counted, l.handshakesPerIP); after > 0 {
		c.count.PerIP.Add(1)
		return nil, rateLimited("too many handshakes from this address", after)
	}
	if after := c.handshakes.spend(l.handshakes, 1, false); after > 0 {
		c.count.Handshakes.Add(1)
		return nil, rateLimited("too many handshakes", after)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.PerIP > 0 && c.addresses[counted] >= l.PerIP {
		c.count.PerIP.Add(1)
		return nil, rateLimited("too many connections from this address", connectionsRetry)
	}
	c.addresses[counted]++
	if !from.IsValid() {
		from = counted
	}
	return &Permit{limiter: c, from: from}, nil
}

// From returns the address that the connection comes from, by the word of trusted proxies; an invalid one after
// Release.
func (p *Permit) From() netip.Addr {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	return p.from
}

// connectionsRetry is when it makes sense to try again after too many connections.
const connectionsRetry = 5 * time.Second

// CountFor counts the connection for a principal: RATE_LIMITED when that, or its tenant, has as many as it may.
// details is a pointer to what is known of the principal, which nobody changes. It returns the pointer that an earlier
// connection of the principal has brought, where that points to the same: so all of them keep it once.
func (p *Permit) CountFor(tenant, name string, details any) (shared any, err error) {
	c, key := p.limiter, principalKey{tenant, name}
	l := c.limits.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.principals[key]
	if of == nil {
		of = &principalConns{key: key, details: details}
	}
	if level, refused := l.Bound(Connections).Refuses(Held{0, int64(of.n), c.tenants[tenant], c.named}, 1); refused {
		c.count.Principals.Add(1)
		e := Connections.Refusal(level)
		e.RetryAfter = connectionsRetry
		return nil, e
	}
	c.principals[key] = of
	of.n++
	c.named++
	count(c.tenants, tenant, 1)
	p.of = of
	if !reflect.DeepEqual(of.details, details) {
		of.details = details // its credentials were renewed: those that come now have them as well
	}
	return of.details, nil
}

// Release has the connection counted no more. Idempotent.
func (p *Permit) Release() {
	c := p.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.from.IsValid() {
		counted := countedAddress(p.from)
		if c.addresses[counted]--; c.addresses[counted] <= 0 {
			delete(c.addresses, counted)
		}
		p.from = netip.Addr{}
	}
	if p.of != nil {
		c.named--
		count(c.tenants, p.of.key.tenant, -1)
		if p.of.n--; p.of.n == 0 {
			delete(c.principals, p.of.key)
		}
		p.of = nil
	}
}

// rateLimited is RATE_LIMITED, until some time has passed.
func rateLimited(why string, after time.Duration) error {
	return &agora.Error{Code: agora.RateLimited, Message: why, RetryAfter: max(after, time.Millisecond)}
}
