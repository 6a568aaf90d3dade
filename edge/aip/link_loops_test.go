package aip_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// Three clusters, each linked to both others: every node stands in each once, and is reached.
func TestClustersInARingHaveEveryNodeOnce(t *testing.T) {
	t.Parallel()
	var all []*site
	for i := range 3 {
		s := open(t, setup{Options: agoratest.Options{Edges: 1}})
		s.registered(0, "node-"+string(rune('a'+i)), startNode(t, &node{}))
		all = append(all, s)
	}
	for i, s := range all {
		s.links(0, all[(i+1)%3].addrs[0])
	}
	for _, s := range all {
		s.lists(0, "node-a", "node-b", "node-c")
	}
	for i, s := range all {
		s.links(0, all[(i+2)%3].addrs[0])
	}
	late := startNode(t, &node{})
	for i, s := range all {
		s.registered(0, "late", late)
		for k := range 3 {
			all[k].lists(0, "late", "node-a", "node-b", "node-c")
			all[k].converses(0, "late")
			for _, id := range []string{"node-a", "node-b", "node-c"} {
				all[k].converses(0, id)
			}
		}
		s.deregisters(0, "late")
		for k := range 3 {
			all[k].lists(0, "node-a", "node-b", "node-c")
		}
		await.True(t, "nobody has it any more", func() bool { return all[i].nodes(0)["late"] == nil })
	}
}

// A chain of gateways is followed for four hops, and no further.
func TestANodeIsReachedThroughFourGatewaysAtMost(t *testing.T) {
	t.Parallel()
	var all []*site
	for i := range 6 {
		s := open(t, setup{Options: agoratest.Options{Edges: 1}})
		if i > 0 {
			s.links(0, all[i-1].addrs[0])
		}
		all = append(all, s)
	}
	all[0].registered(0, "far", startNode(t, &node{}))
	for _, s := range all[:5] {
		s.lists(0, "far")
	}
	all[4].converses(0, "far")
	all[1].registered(0, "near", startNode(t, &node{}))
	all[5].lists(0, "near")
	all[5].converses(0, "near")
	if all[5].nodes(0)["far"] != nil {
		t.Error("a node is listed that five gateways lead to")
	}
	tooFar := metadata.AppendToOutgoingContext(t.Context(), "agora-aip-path", "a,b,c,d,e")
	if _, err := all[0].gateway(0, "").GetNodes(tooFar, &wire.GetNodesRequest{}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a call that has come too far is %v", err)
	}
}

func TestAClusterIsNotLinkedToItself(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}, door: aip.Config{GatewayID: "me"}})
	s.registered(0, "a", startNode(t, &node{}))
	s.links(0, s.addrs[1])
	await.True(t, "the link says so", func() bool {
		l := s.link(1, s.addrs[1])
		return l.State == aip.LinkDown && strings.Contains(l.Error, "before") && l.Nodes == 0
	})
	back := metadata.AppendToOutgoingContext(t.Context(), "agora-aip-path", "other, me")
	for what, err := range map[string]error{
		"a session": func() error {
			c, err := s.gateway(0, "").RouteAgentCalling(back)
			if err == nil {
				says(t, c, asks("caller", "a", "s", wire.AgentMessage_START_QUEST))
				_, err = c.Recv()
			}
			return err
		}(),
		"a tool call": func() error {
			_, err := s.gateway(1, "").RouteToolCalling(back, &wire.ToolRequest{SenderId: "caller", ReceiverId: "a", ToolName: "t"})
			return err
		}(),
		"a subscription": func() error {
			c, err := s.gateway(0, "").SubscribeToUpdates(back, &wire.UpdateSubscriptionRequest{SubscriberId: "w"})
			if err == nil {
				_, err = c.Recv()
			}
			return err
		}(),
	} {
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s that comes back is %v", what, err)
		}
	}
}
