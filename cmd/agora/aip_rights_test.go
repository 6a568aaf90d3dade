package main

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire/aip"
)

// aipVerbs has a node of one edge do, and have done to it by another edge, all that asks for a right at NATS or Redis.
func aipVerbs(t *testing.T, first, second *running) {
	t.Helper()
	ctx := await.Context(t)
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	one, two := gatewayAt(t, first.grpc), gatewayAt(t, second.grpc)
	box := boxed("box", toolbox(t))
	_, err := one.RegisterTool(ctx, box)
	ok("RegisterTool", err)
	watching, err := two.SubscribeToUpdates(ctx, &aip.UpdateSubscriptionRequest{SubscriberId: "al"})
	ok("SubscribeToUpdates", err)
	_, err = watching.Header()
	ok("SubscribeToUpdates", err)
	shouts(t, two)
	if status, _, stderr := command(t, "call", "--url", second.public, "--from", "al", "--to", "box", "shout", `{}`); status != 0 {
		t.Errorf("agora call ended with %d: %s", status, stderr)
	}
	_, err = two.Heartbeat(ctx, &aip.HeartbeatRequest{SenderId: "box"})
	ok("Heartbeat", err)
	box.Description = "louder"
	_, err = two.UpdateNodeInfo(ctx, &aip.UpdateNodeInfoRequest{NodeInfo: &aip.Peer{InfoType: &aip.Peer_ToolboxInfo{ToolboxInfo: box}}})
	ok("UpdateNodeInfo", err)
	for u := (*aip.NodeUpdate)(nil); u.GetPeer().GetToolboxInfo().GetDescription() != box.Description; {
		u, err = watching.Recv()
		ok("an update", err)
	}
	_, err = one.Unsubscribe(ctx, &aip.UnsubscribeRequest{SubscriberId: "al"})
	ok("Unsubscribe", err)
	for err == nil {
		_, err = watching.Recv()
	}
	if code := grpcstatus.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
		t.Errorf("a subscription ends with %v, though it was ended at the other edge", err)
	}
	_, err = two.DeregisterNode(ctx, &aip.DeregisterNodeRequest{NodeId: "box"})
	ok("DeregisterNode", err)
	for _, args := range [][]string{{"link", "127.0.0.1:1"}, {"links"}, {"unlink", "127.0.0.1:1"}} {
		if status, _, stderr := command(t, append(args, "--admin", second.admin)...); status != 0 {
			t.Errorf("agora %q ended with %d: %s", args, status, stderr)
		}
	}
}

func TestNodesAndLinksNeedNoMoreThanTheRightsThatAreDocumented(t *testing.T) {
	t.Parallel()
	nats := guardedNATS(t, fileOf(t, natsRights))[0]
	presence, admin := guardedRedis(t, strings.Fields(fileOf(t, redisRights)))
	p := newCouple(t, nats, presence, []string{"--node.dial-allow", "127.0.0.0/8"})
	var edges []*running
	for range 2 {
		e, err := p.edge(await.Context(t))
		if err != nil {
			t.Fatalf("%v\n%s", err, p.said())
		}
		edges = append(edges, e)
	}
	aipVerbs(t, edges[0], edges[1])
	for _, r := range edges {
		r.ended()
	}
	if said := p.said(); strings.Contains(said, "iolation") {
		t.Error(said)
	}
	if refused, err := admin.Do(context.Background(), "ACL", "LOG").Slice(); err != nil || len(refused) > 0 {
		t.Errorf("Redis refused %v (%v)", refused, err)
	}
}
