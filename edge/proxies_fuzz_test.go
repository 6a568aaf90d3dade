package edge

import (
	"net/netip"
	"strings"
	"testing"
)

// FuzzForwarded holds that where a request comes from is what the last proxy that is not trusted, or the client, is
// known to have: nothing that a client writes before that counts, and strangers are where their sockets are.
func FuzzForwarded(f *testing.F) {
	for _, s := range [][2]string{
		{"10.0.0.1:1", "192.0.2.1"}, {"10.0.0.1:1", "192.0.2.9, 192.0.2.1"}, {"10.0.0.1:1", "192.0.2.9, 10.0.0.2"}, {"10.0.0.1:1", "x, 10.0.0.2"}, {"192.0.2.7:1", "192.0.2.1"},
		{"10.0.0.1:1", ",,"}, {"10.0.0.1:1", "[::ffff:10.0.0.3]:80"}, {"10.0.0.1:1", "fe80::1%eth0"}, {"", "10.0.0.1"}, {"10.0.0.1:1", "10.0.0.2\n192.0.2.1"},
	} {
		f.Add(s[0], s[1], "192.0.2.200")
	}
	trusted := netip.MustParsePrefix("10.0.0.0/8")
	var p Proxies
	p.Set([]netip.Prefix{trusted})
	f.Fuzz(func(t *testing.T, remote, forwarded, before string) {
		values := strings.Split(forwarded, "\n")
		got := p.Client(remote, values)
		peer := address(remote)
		if !peer.IsValid() || !trusted.Contains(peer) {
			if got != peer {
				t.Fatalf("%q with %q comes from %v", remote, forwarded, got)
			}
			return
		}
		if got.IsValid() && (got.Is4In6() || got.Zone() != "") {
			t.Fatalf("%q comes from %v, which has two spellings", forwarded, got)
		}
		want := peer
		hops := strings.Split(strings.Join(values, ","), ",")
		for k := len(hops) - 1; k >= 0 && trusted.Contains(want); k-- {
			hop := address(strings.TrimSpace(hops[k]))
			if !hop.IsValid() {
				break
			}
			want = hop
		}
		if got != want {
			t.Fatalf("%q comes from %v, want %v", forwarded, got, want)
		}
		if !trusted.Contains(got) { // a client is known: what it says of itself is nothing
			if lied := p.Client(remote, append(strings.Split(before, "\n"), values...)); lied != got {
				t.Fatalf("with %q before it %q comes from %v, not from %v", before, forwarded, lied, got)
			}
		}
	})
}
