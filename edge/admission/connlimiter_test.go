package admission

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
)

func TestAnAddressHasSoManyConnections(t *testing.T) {
	g := newConnLimiter(Limits{PerIP: 2})
	v4, mapped := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.1")
	first, err := g.Acquire(v4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Acquire(mapped); err != nil {
		t.Fatal(err)
	}
	refused(t, g, v4)
	refused(t, g, mapped)
	if _, err := g.Acquire(netip.MustParseAddr("192.0.2.2")); err != nil {
		t.Errorf("another address: %v", err)
	}
	first.Release()
	first.Release()
	if _, err := g.Acquire(v4); err != nil {
		t.Errorf("after one has left: %v", err)
	}
	refused(t, g, v4)
}

func refused(t *testing.T, g *ConnLimiter, from netip.Addr) {
	t.Helper()
	if _, err := g.Acquire(from); agora.AsError(err) == nil || agora.AsError(err).Code != agora.RateLimited || agora.AsError(err).RetryAfter == 0 {
		t.Errorf("from %v: %v, want RATE_LIMITED and when to try again", from, err)
	}
}

func TestWhoHasANetworkOfIPv6IsOneAddress(t *testing.T) {
	g := newConnLimiter(Limits{PerIP: 3})
	for k := range 3 {
		if _, err := g.Acquire(numbered(k)); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, g, numbered(3))
	if _, err := g.Acquire(netip.MustParseAddr("2001:db8:0:1::1")); err != nil {
		t.Errorf("another network: %v", err)
	}
}

// numbered is an address of 2001:db8::/64.
func numbered(k int) netip.Addr {
	b := netip.MustParseAddr("2001:db8::").As16()
	binary.BigEndian.PutUint64(b[8:], uint64(k)+1)
	return netip.AddrFrom16(b)
}

func TestAPrincipalHasSoManyConnectionsAtOneTenant(t *testing.T) {
	g := newConnLimiter(Limits{PerPrincipal: 1})
	claim := func(p principal) (*Permit, error) {
		permit, err := g.Acquire(netip.MustParseAddr("192.0.2.1"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = permit.CountFor(p.Tenant, p.Name, &p)
		return permit, err
	}
	first, err := claim(principal{Name: "joe", Tenant: "a"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := claim(principal{Name: "joe", Tenant: "a"})
	if agora.AsError(err) == nil || agora.AsError(err).Code != agora.RateLimited {
		t.Errorf("a second one: %v, want RATE_LIMITED", err)
	}
	second.Release()
	if _, err := claim(principal{Name: "joe", Tenant: "b"}); err != nil {
		t.Errorf("one of the same name of another tenant: %v", err)
	}
	first.Release()
	if _, err := claim(principal{Name: "joe", Tenant: "a"}); err != nil {
		t.Errorf("after it has left: %v", err)
	}
}

// newConnLimiter returns a limiter with limits of its own.
func newConnLimiter(l Limits) *ConnLimiter {
	return NewConnLimiter(NewLiveLimits(l))
}

// principal is what a test knows of one.
type principal struct {
	Name, Tenant string
	Agents       []string
}

func TestConnectionsOfOnePrincipalShareWhatIsKnownOfIt(t *testing.T) {
	g := newConnLimiter(Limits{})
	claim := func(p principal) *principal {
		permit, err := g.Acquire(netip.MustParseAddr("192.0.2.1"))
		if err != nil {
			t.Fatal(err)
		}
		shared, err := permit.CountFor(p.Tenant, p.Name, &p)
		if err != nil {
			t.Fatal(err)
		}
		return shared.(*principal)
	}
	first := claim(principal{Name: "joe", Tenant: "a", Agents: []string{"joe-*"}})
	if second := claim(principal{Name: "joe", Tenant: "a", Agents: []string{"joe-*"}}); second != first {
		t.Error("the same principal is kept twice")
	}
	other := claim(principal{Name: "joe", Tenant: "a", Agents: []string{"joe-1"}})
	if other == first || other.Agents[0] != "joe-1" {
		t.Errorf("a principal of other rights became %+v", other)
	}
	if again := claim(principal{Name: "joe", Tenant: "a", Agents: []string{"joe-1"}}); again != other {
		t.Error("renewed credentials are kept twice")
	}
}

func TestHandshakesComeAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newConnLimiter(Limits{HandshakesPerIP: 5, Handshakes: 20})
		one := netip.MustParseAddr("192.0.2.1")
		for range 5 {
			enterAndLeave(t, g, one)
		}
		refused(t, g, one)
		for k := range 15 {
			enterAndLeave(t, g, netip.AddrFrom4([4]byte{198, 51, 100, byte(k)}))
		}
		refused(t, g, netip.MustParseAddr("203.0.113.1"))
		time.Sleep(time.Second)
		enterAndLeave(t, g, one)
	})
}

func enterAndLeave(t *testing.T, g *ConnLimiter, from netip.Addr) {
	t.Helper()
	p, err := g.Acquire(from)
	if err != nil {
		t.Fatalf("from %v: %v", from, err)
	}
	p.Release()
}

func TestAFloodOfHandshakesTakesNoMemoryAndNobodyElsesTurn(t *testing.T) {
	g := newConnLimiter(Limits{HandshakesPerIP: 3, PerIP: 2})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	flood := func(k int) {
		b := netip.MustParseAddr("2001:db8::").As16()
		binary.BigEndian.PutUint32(b[4:], uint32(k%8)) // eight networks, each of as many hosts as it likes
		binary.BigEndian.PutUint64(b[8:], uint64(k)*2654435761)
		if p, err := g.Acquire(netip.AddrFrom16(b)); err == nil {
			p.Release()
		}
	}
	flood(0)
	before := heap()
	for k := range 50_000 {
		flood(k)
	}
	if grown := int64(heap()) - int64(before); grown > 64<<10 {
		t.Errorf("%d bytes are kept of a flood, want none", grown)
	}
	for k := range 200 { // and who comes from elsewhere gets in
		enterAndLeave(t, g, netip.AddrFrom4([4]byte{198, 51, 100, byte(k)}))
	}
	if g.Stats().PerIP.Load() < 45_000 {
		t.Errorf("%d were turned away, want nearly all", g.Stats().PerIP.Load())
	}
	runtime.KeepAlive(g)
}
