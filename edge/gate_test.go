package edge

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
	g := NewGate(Limits{PerIP: 2})
	v4, mapped := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.1")
	first, err := g.Enter(v4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Enter(mapped); err != nil {
		t.Fatal(err)
	}
	refused(t, g, v4)
	refused(t, g, mapped)
	if _, err := g.Enter(netip.MustParseAddr("192.0.2.2")); err != nil {
		t.Errorf("another address: %v", err)
	}
	first.Leave()
	first.Leave()
	if _, err := g.Enter(v4); err != nil {
		t.Errorf("after one has left: %v", err)
	}
	refused(t, g, v4)
}

func refused(t *testing.T, g *Gate, from netip.Addr) {
	t.Helper()
	if _, err := g.Enter(from); agora.AsError(err) == nil || agora.AsError(err).Code != agora.RateLimited || agora.AsError(err).RetryAfter == 0 {
		t.Errorf("from %v: %v, want RATE_LIMITED and when to try again", from, err)
	}
}

func TestWhoHasANetworkOfIPv6IsOneAddress(t *testing.T) {
	g := NewGate(Limits{PerIP: 3})
	for k := range 3 {
		if _, err := g.Enter(numbered(k)); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, g, numbered(3))
	if _, err := g.Enter(netip.MustParseAddr("2001:db8:0:1::1")); err != nil {
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
	g := NewGate(Limits{PerPrincipal: 1})
	claim := func(p Principal) (*Pass, error) {
		pass, err := g.Enter(netip.MustParseAddr("192.0.2.1"))
		if err != nil {
			t.Fatal(err)
		}
		return pass, pass.Claim(actorOf(p))
	}
	first, err := claim(Principal{Name: "joe", Tenant: "a"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := claim(Principal{Name: "joe", Tenant: "a"})
	if agora.AsError(err) == nil || agora.AsError(err).Code != agora.RateLimited {
		t.Errorf("a second one: %v, want RATE_LIMITED", err)
	}
	second.Leave()
	if _, err := claim(Principal{Name: "joe", Tenant: "b"}); err != nil {
		t.Errorf("one of the same name of another tenant: %v", err)
	}
	for range 3 {
		if _, err := claim(Principal{Tenant: "a"}); err != nil {
			t.Errorf("nobody in particular: %v", err)
		}
	}
	first.Leave()
	if _, err := claim(Principal{Name: "joe", Tenant: "a"}); err != nil {
		t.Errorf("after it has left: %v", err)
	}
}

func actorOf(p Principal) *Actor {
	a := new(Actor)
	a.principal.Store(&p)
	return a
}

func TestConnectionsOfOnePrincipalShareWhatIsKnownOfIt(t *testing.T) {
	g := NewGate(Limits{})
	claim := func(p Principal) *Principal {
		pass, err := g.Enter(netip.MustParseAddr("192.0.2.1"))
		if err != nil {
			t.Fatal(err)
		}
		a := actorOf(p)
		if err := pass.Claim(a); err != nil {
			t.Fatal(err)
		}
		return a.Principal()
	}
	first := claim(Principal{Name: "joe", Tenant: "a", Agents: []string{"joe-*"}})
	if second := claim(Principal{Name: "joe", Tenant: "a", Agents: []string{"joe-*"}}); second != first {
		t.Error("the same principal is kept twice")
	}
	other := claim(Principal{Name: "joe", Tenant: "a", Agents: []string{"joe-1"}})
	if other == first || other.Agents[0] != "joe-1" {
		t.Errorf("a principal of other rights became %+v", other)
	}
	if again := claim(Principal{Name: "joe", Tenant: "a", Agents: []string{"joe-1"}}); again != other {
		t.Error("renewed credentials are kept twice")
	}
}

func TestHandshakesComeAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(Limits{HandshakesPerIP: 5, Handshakes: 20})
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

func enterAndLeave(t *testing.T, g *Gate, from netip.Addr) {
	t.Helper()
	p, err := g.Enter(from)
	if err != nil {
		t.Fatalf("from %v: %v", from, err)
	}
	p.Leave()
}

func TestAFloodOfHandshakesTakesNoMemoryAndNobodyElsesTurn(t *testing.T) {
	g := NewGate(Limits{HandshakesPerIP: 3, PerIP: 2})
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
		if p, err := g.Enter(netip.AddrFrom16(b)); err == nil {
			p.Leave()
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

func TestTheClientIsWhomTheNearestTrustedProxySaw(t *testing.T) {
	var p Proxies
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:f::/48")}
	for _, c := range []struct {
		about, remote string
		forwarded     []string
		want          string
	}{
		{"no proxy", "192.0.2.1:4000", nil, "192.0.2.1"},
		{"spoofed by one who is not trusted", "192.0.2.1:4000", []string{"203.0.113.9"}, "192.0.2.1"},
		{"spoofed as a trusted proxy", "192.0.2.1:4000", []string{"10.0.0.1"}, "192.0.2.1"},
		{"one proxy", "10.0.0.1:4000", []string{"192.0.2.1"}, "192.0.2.1"},
		{"what the client says of itself does not count", "10.0.0.1:4000", []string{"203.0.113.9, 192.0.2.1"}, "192.0.2.1"},
		{"two proxies", "10.0.0.1:4000", []string{"192.0.2.1, 10.0.0.2"}, "192.0.2.1"},
		{"several headers", "10.0.0.1:4000", []string{"203.0.113.9", "192.0.2.1,10.0.0.2"}, "192.0.2.1"},
		{"a proxy that says nothing", "10.0.0.1:4000", nil, "10.0.0.1"},
		{"only proxies", "10.0.0.1:4000", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"rubbish behind a proxy", "10.0.0.1:4000", []string{"192.0.2.1, ;drop"}, "10.0.0.1"},
		{"rubbish before the client", "10.0.0.1:4000", []string{"unknown, 192.0.2.1"}, "192.0.2.1"},
		{"nothing but commas", "10.0.0.1:4000", []string{",,,"}, "10.0.0.1"},
		{"with ports", "10.0.0.1:4000", []string{"192.0.2.1:55"}, "192.0.2.1"},
		{"IPv6", "[2001:db8:f::1]:4000", []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		{"IPv6 in brackets", "[2001:db8:f::1]:4000", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"a trusted one as IPv6", "[::ffff:10.0.0.1]:4000", []string{"192.0.2.1"}, "192.0.2.1"},
	} {
		p.Set(trusted)
		if got := p.Client(c.remote, c.forwarded); got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.about, got, c.want)
		}
	}
	p.Set(nil)
	if got := p.Client("10.0.0.1:4000", []string{"192.0.2.1"}); got.String() != "10.0.0.1" {
		t.Errorf("nobody is trusted: %v, want the peer", got)
	}
}
