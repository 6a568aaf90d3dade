package aip_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

func TestALinkIsToAnAddressThatMayBeDialled(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	for address, want := range map[string]agora.Code{"": agora.InvalidRequest, "nowhere": agora.InvalidRequest, "169.254.1.1:1": agora.Forbidden} {
		if err := s.door(0).Link(t.Context(), "", address); agora.AsError(err).Code != want {
			t.Errorf("link to %q: %v, want %v", address, err, want)
		}
	}
	if all, err := s.door(0).Links(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("links %v, %v", all, err)
	}
}

func TestALinkIsItsTenants(t *testing.T) {
	t.Parallel()
	g := startForeign(t, new(foreign))
	g.has("a")
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: tenants{}}}, door: aip.Config{Poll: 20 * time.Millisecond}})
	if err := s.door(0).Link(t.Context(), "blue", g.addr); err != nil {
		t.Fatal(err)
	}
	list := func(tenant string) int {
		out, err := s.gateway(0, tenant).GetNodes(t.Context(), &wire.GetNodesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return len(out.GetPeers())
	}
	await.True(t, "its tenant has its nodes", func() bool { return list("blue") == 1 })
	if list("red") != 0 {
		t.Error("another one has them as well")
	}
	c, err := s.gateway(0, "red").RouteAgentCalling(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	says(t, c, asks("caller", "a", "s", wire.AgentMessage_START_QUEST))
	if _, err := c.Recv(); status.Code(err) != codes.NotFound {
		t.Errorf("and reaches them: %v", err)
	}
}

// tenants takes a token for a tenant, anybody of which may be any agent.
type tenants struct{}

func (tenants) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	return edge.Principal{Name: "x", Tenant: c.Token, Any: true}, nil
}
