package endpoint_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/agora-relay/agora/internal/endpoint"
)

func TestAddressesOfOnePortShareAName(t *testing.T) {
	t.Parallel()
	here := endpoint.Machine{ID: "m1", Addr: func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("fe80::5")}
	}}
	other := endpoint.Machine{ID: "m2", Addr: func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("10.0.0.6"), netip.MustParseAddr("172.17.0.1")}
	}}
	for _, c := range []struct {
		about string
		a     endpoint.Machine
		of    string
		b     endpoint.Machine
		and   string
		want  bool
	}{
		{"one address", here, "192.0.2.1", other, "192.0.2.1", true},
		{"two addresses", here, "192.0.2.1", here, "192.0.2.2", false},
		{"loopback", here, "127.0.0.1", here, "127.9.9.9", true},
		{"loopback of both kinds", here, "127.0.0.1", here, "::1", true},
		{"loopback, as two machines see it", here, "127.0.0.1", other, "127.0.0.1", true},
		{"what is not specified", here, "0.0.0.0", here, "::", true},
		{"loopback and the machine's own", here, "127.0.0.1", here, "10.0.0.5", true},
		{"two of the machine's own", here, "fe80::5", here, "10.0.0.5", true},
		{"two machines' own", here, "10.0.0.5", other, "10.0.0.6", false},
		{"loopback here, and another machine's own", here, "127.0.0.1", other, "10.0.0.6", false},
		{"mapped", here, "::ffff:192.0.2.1", here, "192.0.2.1", true},
		{"zones", here, "fe80::1%a", here, "fe80::1%b", true},
		{"carried by NAT64", here, "64:ff9b::c000:201", here, "192.0.2.1", true},
		{"carried by 6to4", here, "2002:c000:201::", here, "192.0.2.1", true},
	} {
		a, b := c.a.Names([]netip.Addr{netip.MustParseAddr(c.of)}, 80), c.b.Names([]netip.Addr{netip.MustParseAddr(c.and)}, 80)
		if got := slices.ContainsFunc(a, func(n string) bool { return slices.Contains(b, n) }); got != c.want {
			t.Errorf("%s: %s is %q, %s is %q: share one is %t", c.about, c.of, a, c.and, b, got)
		}
		if b := c.b.Names([]netip.Addr{netip.MustParseAddr(c.and)}, 81); slices.ContainsFunc(a, func(n string) bool { return slices.Contains(b, n) }) {
			t.Errorf("%s: %q and %q are two ports", c.about, a, b)
		}
	}
	if this := endpoint.This(); this.ID == "" {
		t.Error("this machine has no name")
	}
}
