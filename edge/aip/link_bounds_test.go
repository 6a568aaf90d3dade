package aip_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// TestALinkKeepsNoMoreOfItsGatewaysListThanItMay links a cluster to a gateway whose list is longer than a link may
// keep, and takes that away again.
func TestALinkKeepsNoMoreOfItsGatewaysListThanItMay(t *testing.T) {
	t.Parallel()
	const offered, size = 50, 1 << 20
	g := startForeign(t, new(foreign))
	long := func(n int) {
		var peers []*wire.Peer
		for i := range n {
			peers = append(peers, &wire.Peer{InfoType: &wire.Peer_AgentInfo{AgentInfo: &wire.AgentInfo{AgentId: fmt.Sprint("n", i), Address: "10.0.0.1:1", Description: strings.Repeat("x", size)}}})
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.peers = peers
	}
	long(offered)
	s := open(t, setup{Options: agoratest.Options{Edges: 1}, door: aip.Config{Poll: 50 * time.Millisecond, Links: []string{g.addr}}})
	kept := 0
	await.True(t, "some nodes are kept", func() bool {
		kept = s.link(0, g.addr).Offered
		return kept > 0
	})
	if kept >= offered {
		t.Errorf("all %d nodes of %d bytes are kept", kept, size)
	}
	long(0)
	u := s.Node(0).Usage()
	await.True(t, "nothing is kept of nodes that are gone", func() bool {
		return s.link(0, g.addr).Offered == 0 && u.All(admission.Offers)+u.All(admission.OfferBytes)+u.All(admission.Bytes) == 0
	})
}

// TestAnAgentHasSoManySubscriptionsAndNoMore subscribes until that is refused, which says which level it is.
func TestAnAgentHasSoManySubscriptionsAndNoMore(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	subscribe := func(id string) error {
		c, err := s.gateway(0, "").SubscribeToUpdates(t.Context(), &wire.UpdateSubscriptionRequest{SubscriberId: id})
		if err == nil {
			_, err = c.Header()
		}
		return err
	}
	limits := s.Node(0).Limits()
	most := int(limits.Bound(admission.Subscriptions).Agent)
	for range most {
		if err := subscribe("one"); err != nil {
			t.Fatal(err)
		}
	}
	await.True(t, "all of them stand", func() bool { return s.Node(0).Usage().All(admission.Subscriptions) == int64(most) })
	c, err := s.gateway(0, "").SubscribeToUpdates(t.Context(), &wire.UpdateSubscriptionRequest{SubscriberId: "one"})
	if err == nil {
		_, err = c.Recv()
	}
	refused(t, "one more", err, codes.ResourceExhausted, "this agent has as many subscriptions to AIP nodes as it may")
	if err := subscribe("two"); err != nil {
		t.Errorf("of another agent: %v", err)
	}
}
