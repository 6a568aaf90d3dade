package p2p

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/agoratest"
)

// FuzzRegistration reads what may be posted to /register: what is taken is the card of the peer that it names, each of
// whose addresses is whole, ends with that peer alone, and is read again as it was.
func FuzzRegistration(f *testing.F) {
	const id = "12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo"
	for _, s := range []string{
		`{"agent_name":"a","peer_id":"` + id + `"}`,
		`{"agent_name":"a","peer_id":"` + id + `","addrs":["/ip4/192.0.2.1/tcp/1","/ip4/192.0.2.1/tcp/1/ws","/ip4/192.0.2.1/tcp/1/p2p/` + id + `"],"ttl":60}`,
		`{"agent_name":"a","peer_id":"` + id + `","addrs":["/ip4/192.0.2.1/tcp/1/p2p/` + id + `/p2p-circuit"],"ttl":"10m","skills":["x",{"name":"y"}]}`,
		`{"agent_name":"a","peer_id":"` + id + `","addrs":["/p2p-circuit","/p2p/` + id + `","/","","/unix/x","/ip6zone/x/ip6/fe80::1/tcp/1","/dns4/h.example/tcp/1"],"ttl":1e300}`,
		`{"peer_id":"` + strings.Repeat("1", 100) + `"}`, `{"agent_name":7}`, `{"ttl":-1,"peer_id":"` + id + `"}`, `{"ttl":"-1s","peer_id":"` + id + `"}`, `{"ttl":999999999.9,"peer_id":"` + id + `"}`,
	} {
		f.Add([]byte(s))
	}
	s := &shared{node: agoratest.Start(f, agoratest.Options{Edges: 1}).Node(0)}
	relays := &relays{shared: s}
	g := &registry{shared: s, relays: relays, dialer: &dialer{shared: s, relays: relays}}
	over, cancel := context.WithCancel(context.Background())
	cancel() // no name is resolved
	f.Fuzz(func(t *testing.T, body []byte) {
		var r registration
		if !utf8.Valid(body) || !json.Valid(body) || web.Decode(body, &r) != nil { // as a body is before it is decoded
			return
		}
		id, card, lasts, err := g.read(over, &r, body)
		if err != nil {
			if e := agora.AsError(err); e.Code != agora.InvalidRequest && e.Code != agora.Forbidden {
				t.Fatalf("%q is refused with %v", body, err)
			}
			return
		}
		if card.Peer != id.String() || lasts < 0 || lasts > 1e9*time.Second && !json.Valid(r.TTL) {
			t.Fatalf("%q is %+v for %v", body, card, lasts)
		}
		if len(card.Addresses) != len(r.Addrs) {
			t.Fatalf("of %d addresses %d are left", len(r.Addrs), len(card.Addresses))
		}
		for _, text := range card.Addresses {
			a, err := ma.NewMultiaddr(text)
			if err != nil || a.String() != text {
				t.Fatalf("address %q is %v, %v", text, a, err)
			}
			if _, whose := peer.SplitAddr(a); whose != id {
				t.Fatalf("address %q is of %v, want %v", text, whose, id)
			}
		}
	})
}
