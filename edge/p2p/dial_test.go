package p2p

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/presence"
)

func TestAnEdgeIsDialledWhereItSaysThatItIs(t *testing.T) {
	id, err := peer.Decode("12D3KooWGvkKMXgFaL2rU3Qy4myZQuZAaMV7PxrHjhoyRsVsgVYc")
	if err != nil {
		t.Fatal(err)
	}
	var r relays
	r.take([]presence.Relay{{Holder: presence.Holder{Edge: "e"}, Peer: id.String(), Addresses: []string{"/ip4/127.0.0.1/tcp/9000/p2p/" + id.String()}}})
	for at, want := range map[string]bool{"/ip4/127.0.0.1/tcp/9000": true, "/ip4/127.0.0.1/tcp/9001": false, "/ip4/169.254.169.254/tcp/9000": false} {
		if r.announces(id, ma.StringCast(at)) != want || r.announces("another", ma.StringCast(at)) {
			t.Errorf("the edge is at %s: %v", at, !want)
		}
	}
}
