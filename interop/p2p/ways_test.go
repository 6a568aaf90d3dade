//go:build interop

package p2p

import (
	"fmt"
	"testing"

	ma "github.com/multiformats/go-multiaddr"
)

// large is how many bytes go each way at once.
const large = 64 << 20

// way is how a peer is reached.
type way struct {
	name, address string
}

// ways returns those to a peer that listens, and to one that has reserved a place at edge 0 by TCP and at edge 1 by
// WebSocket.
func (c *cluster) ways(listens, reserved served) []way {
	circuit := "/p2p-circuit/p2p/" + reserved.id
	return []way{
		{"direct by TCP", listens.tcp},
		{"direct by WebSocket", listens.ws},
		{"through its edge by TCP", c.tcp[0] + circuit},
		{"through its edge by WebSocket", c.ws[1] + circuit},
		{"across edges by TCP", c.tcp[2] + circuit},
		{"across edges by WebSocket", c.ws[2] + circuit},
	}
}

func TestPeersOfBothLibrariesReachEachOtherInEveryWay(t *testing.T) {
	c := start(t, "--p2p.relay.data", "256MiB")
	js := scripts(t)
	of := map[string][]way{
		"js": c.ways(js.serves(t, "/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/ws"), js.serves(t, c.tcp[0]+"/p2p-circuit", c.ws[1]+"/p2p-circuit")),
		"go": c.ways(enter(t, ma.StringCast("/ip4/127.0.0.1/tcp/0")).serves(t), enter(t).serves(t, c.tcp[0], c.ws[1])),
	}
	for _, pair := range [][2]string{{"js", "js"}, {"js", "go"}, {"go", "js"}} {
		from, to := pair[0], pair[1]
		for _, w := range of[to] {
			t.Run(fmt.Sprintf("%s to %s %s", from, to, w.name), func(t *testing.T) {
				t.Parallel()
				var who caller = js
				if from == "go" {
					who = enter(t)
				}
				if got, want := who.card(t, w.address), fmt.Sprintf(card, to); got != want {
					t.Errorf("the card is %q, want %q", got, want)
				}
				if got := who.handsOff(t, w.address, request); got != answered {
					t.Errorf("the answer is %q, want %q", got, answered)
				}
				who.echo(t, w.address, large, true)
				who.echo(t, w.address, large, false)
			})
		}
	}
}
