package edge

import (
	"hash/maphash"
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Gate lets connections in by where they come from and whose they are, whatever
// their door: so many handshakes a second, so many connections at once. Addresses of IPv6 count by their /64, as
// whoever has one has all of it. What it keeps of handshakes does not grow.
type Gate struct {
	limits  *liveLimits
	knocks  bucket // handshakes of all
	sources sources
	count   GateStats

	mu         sync.Mutex // guards the fields below
	addresses  map[netip.Addr]int
	principals map[owner]*company
}

// GateStats counts whom a Gate turned away. All fields may be read at any time.
type GateStats struct {
	Handshakes atomic.Int64 // more of them a second than the edge takes
	PerIP      atomic.Int64 // from one address: handshakes, or connections
	Principals atomic.Int64 // connections of one principal
}

// owner is whose connections are counted together.
type owner struct{ tenant, name string }

// company is the connections of one owner.
type company struct {
	owner
	n   int
	who *Principal // of who came last: most often that of all
}

// NewGate returns a gate that nobody has passed, with limits of its own that never change.
func NewGate(l Limits) *Gate {
	limits := new(liveLimits)
	limits.set(l)
	return newGate(limits)
}

func newGate(limits *liveLimits) *Gate {
	return &Gate{limits: limits, sources: sources{seed: maphash.MakeSeed()}, addresses: map[netip.Addr]int{}, principals: map[owner]*company{}}
}

// Gate returns the gate that every connection to the edge passes.
func (n *Node) Gate() *Gate { return n.gate }

// Stats returns the counters. They go on counting.
func (g *Gate) Stats() *GateStats { return &g.count }

// Pass is a connection's way through a Gate.
type Pass struct {
	gate *Gate
	from netip.Addr // invalid after Leave
	with *company   // nil after Leave, or where it is not counted
}

// Enter takes a handshake from an address. RATE_LIMITED when there are too many
// handshakes, or too many connections from there. The caller owes a call of Leave.
func (g *Gate) Enter(from netip.Addr) (*Pass, error) {
	l, counted := g.limits.load(), source(from)
	if after := g.sources.take(counted, l.handshakesPerIP); after > 0 {
		g.count.PerIP.Add(1)
		return nil, tooFast("too many handshakes from this address", after)
	}
	if after := g.knocks.take(l.handshakes, 1, false); after > 0 {
		g.count.Handshakes.Add(1)
		return nil, tooFast("too many handshakes", after)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.PerIP > 0 && g.addresses[counted] >= l.PerIP {
		g.count.PerIP.Add(1)
		return nil, tooFast("too many connections from this address", crowdedFor)
	}
	g.addresses[counted]++
	if !from.IsValid() {
		from = counted
	}
	return &Pass{gate: g, from: from}, nil
}

// From returns the address that the connection comes from, by the word of trusted proxies; an invalid one after Leave.
func (p *Pass) From() netip.Addr {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	return p.from
}

// crowdedFor is when it makes sense to try again for who has too many connections.
const crowdedFor = 5 * time.Second

// Claim counts the connection for its actor's principal: RATE_LIMITED when that has too
// many. Principals without a name are nobody in particular, and not counted. Actors that were
// vouched for in the same words share one Principal from then on.
func (p *Pass) Claim(a *Actor) error {
	who := a.Principal()
	if who == nil || who.Name == "" {
		return nil
	}
	g, o := p.gate, owner{who.Tenant, who.Name}
	l := g.limits.load()
	g.mu.Lock()
	defer g.mu.Unlock()
	with := g.principals[o]
	if with == nil {
		with = &company{owner: o, who: who}
	}
	if l.PerPrincipal > 0 && with.n >= l.PerPrincipal {
		g.count.Principals.Add(1)
		return tooFast("too many connections of this principal", crowdedFor)
	}
	g.principals[o] = with
	with.n++
	p.with = with
	if !reflect.DeepEqual(with.who, who) {
		with.who = who // its credentials were renewed: those that come now have them as well
	}
	a.principal.Store(with.who)
	return nil
}

// Leave has the connection counted no more. Idempotent.
func (p *Pass) Leave() {
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.from.IsValid() {
		counted := source(p.from)
		if g.addresses[counted]--; g.addresses[counted] <= 0 {
			delete(g.addresses, counted)
		}
		p.from = netip.Addr{}
	}
	if p.with != nil {
		if p.with.n--; p.with.n == 0 {
			delete(g.principals, p.with.owner)
		}
		p.with = nil
	}
}

// source is what addresses are counted by. One that can't be read counts as the unspecified one.
func source(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	switch {
	case !a.IsValid():
		return netip.IPv6Unspecified()
	case a.Is4():
		return a
	}
	return netip.PrefixFrom(a, 64).Masked().Addr()
}

// sources are the buckets of all addresses that there may be, in a table of one
// size: each address has two of them, by a hash that nobody outside can foretell, and is refused when
// both are empty. Who floods from many addresses empties some of others with them, but seldom both.
type sources struct {
	seed  maphash.Seed
	table [sourceBuckets]bucket
}

const sourceBuckets = 1 << 15 // 256 KiB

// fill makes every bucket full.
func (g *Gate) fill() {
	g.knocks.fill()
	for k := range g.sources.table {
		g.sources.table[k].fill()
	}
}

// take takes a token of an address, or says when there is one.
func (s *sources) take(a netip.Addr, p pace) time.Duration {
	if p.rate <= 0 {
		return 0
	}
	h := maphash.Comparable(s.seed, a)
	one, two := &s.table[h%sourceBuckets], &s.table[h>>32%sourceBuckets]
	first, second := one.take(p, 1, false), two.take(p, 1, false)
	if first > 0 && second > 0 {
		return min(first, second)
	}
	return 0
}
