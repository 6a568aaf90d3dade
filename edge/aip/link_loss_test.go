package aip_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

func TestALinkGoesOnAtAnotherEdge(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"drained", "cut"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			two := open(t, setup{Options: agoratest.Options{Edges: 1}})
			two.registered(0, "a", startNode(t, &node{}))
			o := agoratest.Options{Edges: 1, Grace: time.Hour}
			if how == "cut" {
				o.Leases = []time.Duration{5 * time.Second}
			}
			one := open(t, setup{Options: o})
			one.links(0, two.addrs[0])
			one.lists(0, "a")
			one.AddEdge()
			one.lists(1, "a")
			w := one.subscribed(1, "", "w")
			tells(t, w, "ADDED a")
			if how == "cut" {
				one.CutEdge(0)
			} else {
				one.StopEdge(0)
			}
			await.True(t, "the other edge holds it", func() bool {
				l := one.link(1, two.addrs[0])
				return l.State == aip.LinkUp && l.Edge == one.Node(1).Config().ID && l.Nodes == 1
			})
			one.converses(1, "a")
			two.registered(0, "b", startNode(t, &node{}))
			tells(t, w, "ADDED b") // and nothing of a, which was there all along
			two.deregisters(0, "a")
			tells(t, w, "REMOVED a")
		})
	}
}

// A link that was made while the cluster runs outlasts a presence that comes back empty.
func TestALinkOutlastsALossOfPresence(t *testing.T) {
	t.Parallel()
	two := open(t, setup{Options: agoratest.Options{Edges: 1}})
	two.registered(0, "a", startNode(t, &node{}))
	one := open(t, setup{Options: agoratest.Options{Edges: 2, Redis: true, Node: edge.Config{Lease: watchful}}})
	one.links(0, two.addrs[0])
	gone := startForeign(t, new(foreign))
	gone.has("ghost")
	one.links(0, gone.addr)
	one.lists(1, "a", "ghost")
	if err := one.door(0).Unlink(t.Context(), "", gone.addr); err != nil {
		t.Fatal(err)
	}
	one.lists(1, "a")
	one.Redis.Stop()
	one.Redis.Start()
	two.registered(0, "b", startNode(t, &node{}))
	await.True(t, "the link has its nodes", func() bool {
		out, err := one.gateway(1, "").GetNodes(t.Context(), &wire.GetNodesRequest{})
		return err == nil && len(out.GetPeers()) == 2
	})
	await.True(t, "the other edge shows them", func() bool {
		out, err := one.gateway(0, "").GetNodes(t.Context(), &wire.GetNodesRequest{})
		return err == nil && len(out.GetPeers()) == 2
	})
	if one.link(1, two.addrs[0]).Address == "" || one.link(1, gone.addr).Address != "" {
		t.Error("links are not as they were")
	}
}
