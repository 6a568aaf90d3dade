package aip_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/aip"
)

// folk takes any token "tenant/name/ids" for a principal of that tenant and name, which may be those agents, with
// commas between them; any where there are none.
type folk struct{}

// Authenticate returns the principal that the token names.
func (folk) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	words := strings.Split(c.Token, "/")
	if len(words) < 2 {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "a token is tenant/name/ids")
	}
	p := edge.Principal{Tenant: words[0], Name: words[1], Any: len(words) == 2}
	if !p.Any {
		p.Agents = strings.Split(words[2], ",")
	}
	return p, nil
}

func TestNobodyIsAnotherByWhatItSays(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}}}})
	n, other := startNode(t, &node{}), startNode(t, &node{})
	ctx := t.Context()
	register := func(k int, token, id string, n *node) error {
		_, err := s.gateway(k, token).RegisterAgent(ctx, &wire.AgentInfo{AgentId: id, Address: n.addr})
		return err
	}
	refused(t, "without credentials", register(0, "", "a", n), codes.Unauthenticated, "")
	refused(t, "an id of others", register(0, "t/p/b", "a", n), codes.PermissionDenied, "")
	if err := register(0, "t/p/a", "a", n); err != nil {
		t.Fatal(err)
	}
	refused(t, "its address in another tenant", register(1, "u/p/a", "a", n), codes.AlreadyExists, "Address ["+n.addr+"] already registered.")
	if err := register(1, "u/p/a", "a", startNode(t, &node{})); err != nil {
		t.Errorf("its id in another tenant: %v", err)
	}
	refused(t, "the id of a node that lives", register(1, "t/q/a", "a", other), codes.AlreadyExists, "Agent [a] already registered.")
	for what, err := range map[string]error{
		"heartbeat":  second(s.gateway(1, "t/q/b").Heartbeat(ctx, &wire.HeartbeatRequest{SenderId: "a"})),
		"deregister": second(s.gateway(1, "t/q/b").DeregisterNode(ctx, &wire.DeregisterNodeRequest{NodeId: "a"})),
		"update": second(s.gateway(1, "t/q/b").UpdateNodeInfo(ctx, &wire.UpdateNodeInfoRequest{NodeInfo: &wire.Peer{InfoType: &wire.Peer_AgentInfo{
			AgentInfo: &wire.AgentInfo{AgentId: "a", Address: n.addr}}}})),
	} {
		refused(t, what+" of another", err, codes.PermissionDenied, "")
	}
	refused(t, "another's heartbeat by who may be anybody", second(s.gateway(1, "t/q").Heartbeat(ctx, &wire.HeartbeatRequest{SenderId: "a"})), codes.PermissionDenied, "")
	refused(t, "health with a service that there is not", health(t, s, 0, "x"), codes.NotFound, "")
	if err := health(t, s, 0, wire.GatewayService_ServiceDesc.ServiceName); err != nil {
		t.Errorf("health: %v", err)
	}
	refused(t, "reflection without credentials", reflects(t, s, ""), codes.Unauthenticated, "")
	if err := reflects(t, s, "t/p/a"); err != nil {
		t.Errorf("reflection: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func health(t *testing.T, s *site, k int, service string) error {
	t.Helper()
	_, err := grpc_health_v1.NewHealthClient(dial(t, s.addr(k), "")).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
	return err
}

func reflects(t *testing.T, s *site, token string) error {
	t.Helper()
	c, err := grpc_reflection_v1.NewServerReflectionClient(dial(t, s.addr(0), token)).ServerReflectionInfo(t.Context())
	if err != nil {
		return err
	}
	if err := c.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = c.Recv()
	return err
}

func TestASenderIsWhoItsCredentialsSay(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}}}})
	n, box := startNode(t, &node{}), startNode(t, &node{})
	ctx := t.Context()
	if _, err := s.gateway(0, "t/p").RegisterAgent(ctx, &wire.AgentInfo{AgentId: "a", Address: n.addr}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.gateway(0, "t/p").RegisterTool(ctx, &wire.ToolBoxInfo{ToolboxId: "box", Address: box.addr}); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{"t/q/me": "me", "t/q/you,me": "", "t/q/he,she": "he"} {
		from := "he" // as whom it says it speaks
		c, err := s.gateway(1, token).RouteAgentCalling(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range []wire.AgentMessage_SessionStatus{wire.AgentMessage_START_QUEST, wire.AgentMessage_STOP_QUEST} {
			says(t, c, asks(from, "a", "s", status))
		}
		got, err := ends(c)
		if want == "" {
			refused(t, token, err, codes.PermissionDenied, "")
			continue
		}
		if err != nil || len(got) != 2 || got[0].GetReceiverId() != want || got[1].GetReceiverId() != want {
			t.Errorf("%s: %v, %v", token, got, err)
		}
		out, err := s.gateway(1, token).RouteToolCalling(ctx, &wire.ToolRequest{SenderId: from, ReceiverId: "box"})
		if err != nil || out.GetReceiverId() != want {
			t.Errorf("%s: %v, %v", token, out, err)
		}
	}
	two := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer t/p")
	refused(t, "two tokens", second(s.gateway(0, "t/q").GetNodes(two, &wire.GetNodesRequest{})), codes.InvalidArgument, "")
	refused(t, "a node of another tenant", second(s.gateway(0, "u/q").RouteToolCalling(ctx, &wire.ToolRequest{SenderId: "x", ReceiverId: "box"})), codes.NotFound, "Receiver not found")
}

// That a node was just called by one says nothing of what another may do, nor of what the same one may do once the
// rules have changed.
func TestWhoMayCallANodeIsAskedForEachCall(t *testing.T) {
	t.Parallel()
	rules := func(send string) *policy.Rules {
		t.Helper()
		r, err := policy.Parse([]byte("rules:\n- {name: all, who: {names: [p]}, agents: [\"*\"], send: [" + send + "], directory: true}\n- {name: some, who: {names: [q]}, agents: [\"*\"]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	p := new(policy.Policy)
	p.Set(rules("box"))
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: folk{}, Policy: p}}})
	box := startNode(t, &node{})
	if _, err := s.gateway(0, "t/p").RegisterTool(t.Context(), &wire.ToolBoxInfo{ToolboxId: "box", Address: box.addr}); err != nil {
		t.Fatal(err)
	}
	call := func(token string) error {
		return second(s.gateway(0, token).RouteToolCalling(t.Context(), &wire.ToolRequest{SenderId: "c", ReceiverId: "box"}))
	}
	if err := call("t/p"); err != nil {
		t.Fatal(err)
	}
	refused(t, "another principal", call("t/q"), codes.PermissionDenied, "")
	p.Set(rules("other"))
	refused(t, "the same one under other rules", call("t/p"), codes.PermissionDenied, "")
}
