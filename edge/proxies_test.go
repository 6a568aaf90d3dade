package edge

import (
	"net/netip"
	"testing"
)

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
