package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpccreds "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/agora-relay/agora/cmd/agora/certs"
	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/wire/aip"
)

// toolbox serves one tool, shout, until the test ends, and returns where.
func toolbox(t *testing.T, opts ...grpc.ServerOption) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(opts...)
	aip.RegisterToolServiceServer(s, shouter{})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

type shouter struct {
	aip.UnimplementedToolServiceServer
}

func (shouter) CallTool(_ context.Context, in *aip.ToolRequest) (*aip.ToolResponse, error) {
	said := strings.ToUpper(in.GetArguments())
	return &aip.ToolResponse{SenderId: in.GetReceiverId(), Content: []*aip.ContentItem{{Data: &aip.ContentItem_Text{Text: said}}}}, nil
}

// boxed is what a toolbox registers with.
func boxed(id, address string) *aip.ToolBoxInfo {
	return &aip.ToolBoxInfo{ToolboxId: id, Address: address, Name: "Loud", Domain: "voices", Tools: []*aip.ToolInfo{{Name: "shout", Description: "shouts"}}}
}

// dialled returns a channel to an edge.
func dialled(t *testing.T, at string, creds grpccreds.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(at, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// gatewayAt returns a client of the gateway at an edge without TLS.
func gatewayAt(t *testing.T, at string) aip.GatewayServiceClient {
	t.Helper()
	return aip.NewGatewayServiceClient(dialled(t, at, insecure.NewCredentials()))
}

// nodeIDs returns the ids of the nodes that an edge knows.
func nodeIDs(ctx context.Context, g aip.GatewayServiceClient) (ids []string, err error) {
	r, err := g.GetNodes(ctx, &aip.GetNodesRequest{})
	for _, p := range r.GetPeers() {
		ids = append(ids, p.GetAgentInfo().GetAgentId()+p.GetToolboxInfo().GetToolboxId())
	}
	return ids, err
}

// shouts has the toolbox shout something, by an edge.
func shouts(t *testing.T, g aip.GatewayServiceClient) {
	t.Helper()
	r, err := g.RouteToolCalling(await.Context(t), &aip.ToolRequest{SenderId: "al", ReceiverId: "box", SessionId: "s", ToolName: "shout", Arguments: `{"a":"b"}`})
	if err != nil || len(r.GetContent()) != 1 || r.GetContent()[0].GetText() != `{"A":"B"}` {
		t.Errorf("it answers %v, %v", r, err)
	}
}

func TestDevServesGRPCAtEachEdge(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2")
	if len(d.grpc) != 2 || d.grpc[0] == "" || d.grpc[1] == "" {
		t.Fatalf("gRPC is said to be at %q", d.grpc)
	}
	ctx := await.Context(t)
	one, two := gatewayAt(t, d.grpc[0]), gatewayAt(t, d.grpc[1])
	if r, err := one.RegisterTool(ctx, boxed("box", toolbox(t))); err != nil || !r.GetSuccess() {
		t.Fatalf("RegisterTool = %v, %v", r, err)
	}
	connect(t, d.public[1]+"?agent_id=bob").hear("agent.registered")
	await.True(t, "both edges know both agents", func() bool {
		a, err := nodeIDs(ctx, one)
		b, errB := nodeIDs(ctx, two)
		return err == nil && errB == nil && slices.Equal(a, b) && slices.Equal(a, []string{"bob", "box"})
	})
	shouts(t, one)
	shouts(t, two)
	conn := dialled(t, d.grpc[1], insecure.NewCredentials())
	h, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil || h.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", h, err)
	}
	if services := reflected(t, conn); !slices.Contains(services, "grpc_service.GatewayService") {
		t.Errorf("it reflects %q", services)
	}
	r, err := one.GetNodes(ctx, &aip.GetNodesRequest{})
	if err != nil || r.GetPeers()[0].GetAgentInfo().GetAddress() != d.grpc[0] {
		t.Errorf("an agent of another dialect is told to be at %v, %v, want the edge that was asked", r.GetPeers(), err)
	}
}

// reflected returns the services that a server says it has.
func reflected(t *testing.T, conn *grpc.ClientConn) (all []string) {
	t.Helper()
	s, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(await.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.GetListServicesResponse().GetService() {
		all = append(all, s.GetName())
	}
	return all
}

func TestAnEdgeNeedNotSpeakGRPC(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--grpc-addr", "none")
	if len(d.grpc) != 1 || d.grpc[0] != "" {
		t.Errorf("gRPC is said to be at %q", d.grpc)
	}
	if metrics, _ := scrape(t, d.admin[0]); metrics["agora_aip_nodes"] != nil {
		t.Error("it counts nodes")
	}
}

// Tokens, signed ones and certificates count as everywhere else.
func TestCredentialsCountOverGRPC(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	none := dialled(t, f.grpc[0], grpccreds.NewTLS(porttest.Trusting(t, f.certs.CA)))
	own := dialled(t, f.grpc[0], grpccreds.NewTLS(porttest.Trusting(t, f.certs.CA, f.certs.ClientCert, f.certs.ClientKey))) // whose name is localhost
	for about, c := range map[string]struct {
		conn      *grpc.ClientConn
		md        []string
		as        string
		get, send codes.Code
	}{
		"no credentials":       {none, nil, "jane", codes.Unauthenticated, codes.Unauthenticated},
		"a bad token":          {none, []string{"authorization", "Bearer agora_0000"}, "jane", codes.Unauthenticated, codes.Unauthenticated},
		"no scheme":            {none, []string{"authorization", f.jane}, "jane", codes.Unauthenticated, codes.Unauthenticated},
		"two tokens":           {none, []string{"authorization", "Bearer " + f.jane, "authorization", "Bearer x"}, "jane", codes.InvalidArgument, codes.InvalidArgument},
		"a token":              {none, []string{"authorization", "Bearer " + f.jane}, "jane/1", codes.OK, codes.NotFound},
		"and another's id":     {none, []string{"authorization", "Bearer " + f.jane}, "joe", codes.OK, codes.PermissionDenied},
		"a certificate":        {own, nil, "localhost", codes.OK, codes.NotFound},
		"what is no metadatum": {none, []string{"token", f.jane}, "jane", codes.Unauthenticated, codes.Unauthenticated},
	} {
		g := aip.NewGatewayServiceClient(c.conn)
		ctx := metadata.AppendToOutgoingContext(await.Context(t), c.md...)
		if _, err := g.GetNodes(ctx, &aip.GetNodesRequest{}); grpcstatus.Code(err) != c.get {
			t.Errorf("%s: GetNodes: %v, want %v", about, err, c.get)
		}
		if _, err := g.RouteToolCalling(ctx, &aip.ToolRequest{SenderId: c.as, ReceiverId: "nobody", ToolName: "x"}); grpcstatus.Code(err) != c.send {
			t.Errorf("%s: RouteToolCalling as %s: %v, want %v", about, c.as, err, c.send)
		}
	}
	h, err := grpc_health_v1.NewHealthClient(none).Check(await.Context(t), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || h.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health without credentials: %v, %v", h, err)
	}
	if strings.Contains(f.stderr.String(), f.jane) {
		t.Error("the log shows a token")
	}
}

func TestReflectionNeedsCredentials(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	c := dialled(t, f.grpc[0], grpccreds.NewTLS(porttest.Trusting(t, f.certs.CA)))
	s, err := grpc_reflection_v1.NewServerReflectionClient(c).ServerReflectionInfo(await.Context(t))
	if err == nil {
		_, err = s.Recv()
	}
	if grpcstatus.Code(err) != codes.Unauthenticated {
		t.Errorf("without credentials: %v, want UNAUTHENTICATED", err)
	}
}

func TestCallsOfAIPAreCountedAndNoLabelComesFromThem(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	before, _ := scrape(t, d.admin[0])
	g := gatewayAt(t, d.grpc[0])
	if _, err := g.RegisterTool(await.Context(t), boxed("box", toolbox(t))); err != nil {
		t.Fatal(err)
	}
	shouts(t, g)
	if _, err := g.RouteToolCalling(await.Context(t), &aip.ToolRequest{SenderId: "al", ReceiverId: "nobody", ToolName: "canary"}); grpcstatus.Code(err) != codes.NotFound {
		t.Errorf("nobody's tool: %v, want NOT_FOUND", err)
	}
	s, err := g.RouteAgentCalling(await.Context(t))
	if err == nil {
		err = s.Send(&aip.AgentMessage{SenderId: "al", SessionStatus: aip.AgentMessage_HOLD_QUEST})
	}
	if err == nil {
		_, err = s.Recv()
	}
	if grpcstatus.Code(err) != codes.InvalidArgument {
		t.Errorf("a session without a start: %v, want INVALID_ARGUMENT", err)
	}
	var values map[string]string
	want := map[string]string{
		"agora_aip_nodes{}": "1", "agora_aip_calls{}": "0", `agora_aip_call_seconds_count{kind="tool"}`: "2", `agora_aip_call_seconds_count{kind="session"}`: "1",
		`agora_aip_calls_total{code="OK",kind="tool"}`: "1", `agora_aip_calls_total{code="NOT_FOUND",kind="tool"}`: "1",
		`agora_aip_calls_total{code="INVALID_ARGUMENT",kind="session"}`: "1", `agora_aip_calls_total{code="CANCELLED",kind="session"}`: "0", "agora_aip_redials_total{}": "0",
	}
	counted := func() bool {
		for name, n := range want {
			if values[name] != n {
				return false
			}
		}
		return values[`agora_aip_bytes_total{direction="in"}`] > "0" && values[`agora_aip_bytes_total{direction="out"}`] > "0"
	}
	var after map[string]*metric
	if !await.Within(await.Long, func() bool { after, values = scrape(t, d.admin[0]); return counted() }) {
		for name, n := range want {
			t.Errorf("%s is %q, want %s", name, values[name], n)
		}
	}
	for name, m := range after {
		for label, of := range m.labels {
			for value := range of {
				if !before[name].labels[label][value] {
					t.Errorf("%s got the label %s=%q while agents called", name, label, value)
				}
			}
		}
	}
}

// An edge that ends has its clients go elsewhere, and other edges take its nodes over.
func TestAnEdgeThatEndsSendsClientsOnAndItsNodesAreAdopted(t *testing.T) {
	t.Parallel()
	args := append(backends(t), "--node.dial-allow", "127.0.0.0/8")
	one, two := launch(t, args...).ready(), launch(t, args...).ready()
	if _, err := gatewayAt(t, one.grpc).RegisterTool(await.Context(t), boxed("box", toolbox(t))); err != nil {
		t.Fatal(err)
	}
	other := gatewayAt(t, two.grpc)
	shouts(t, other)
	client := porttest.Prefaced(t, one.grpc)
	client.Served()
	one.stop()
	client.GoesAway()
	if status := one.over(); status != 0 {
		t.Errorf("the drained edge ended with %d: %s", status, one.stderr)
	}
	await.True(t, "the other edge has the node", func() bool {
		_, values := scrape(t, two.admin)
		return values["agora_aip_nodes{}"] == "1" && values["agora_aip_redials_total{}"] == "1"
	})
	shouts(t, other)
	if ids, err := nodeIDs(await.Context(t), other); err != nil || fmt.Sprint(ids) != "[box]" {
		t.Errorf("nodes are %v, %v", ids, err)
	}
}

// Anyone who balances load by grpc.health.v1 hears of an edge's end before it drains.
func TestHealthOverGRPCFollowsReadiness(t *testing.T) {
	t.Parallel()
	e := launchApart(t, append(backends(t), "--drain.delay", "1h")...).ready()
	health := grpc_health_v1.NewHealthClient(dialled(t, e.grpc, insecure.NewCredentials()))
	says := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) bool {
		r, err := health.Check(await.Context(t), &grpc_health_v1.HealthCheckRequest{Service: "grpc_service.GatewayService"})
		return err == nil && r.GetStatus() == want
	}
	await.True(t, "the edge serves", func() bool { return says(grpc_health_v1.HealthCheckResponse_SERVING) })
	e.stop()
	await.True(t, "the edge says that it is about to end", func() bool { return says(grpc_health_v1.HealthCheckResponse_NOT_SERVING) })
	if _, err := nodeIDs(await.Context(t), gatewayAt(t, e.grpc)); err != nil {
		t.Errorf("who comes within drain.delay is not served: %v", err)
	}
}

// Nodes are dialled by TLS where there is a CA for them, by what its files say at the time.
func TestNodesAreDialledByTLS(t *testing.T) {
	t.Parallel()
	before, now := servers.NewCertificates(t), servers.NewCertificates(t)
	dir := t.TempDir()
	replace := func(with servers.Certificates) {
		porttest.CopyFile(t, with.CA, dir+"/ca")
		porttest.CopyFile(t, with.ClientCert, dir+"/cert")
		porttest.CopyFile(t, with.ClientKey, dir+"/key")
	}
	replace(before)
	d := startDev(t, "--aip.node-tls.ca", dir+"/ca", "--aip.node-tls.cert", dir+"/cert", "--aip.node-tls.key", dir+"/key", "--aip.dial-timeout", "1s")
	g := gatewayAt(t, d.grpc[0])
	register := func(id, address string) error {
		_, err := g.RegisterTool(await.Context(t), boxed(id, address))
		return err
	}
	if err := register("plain", toolbox(t)); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("a node without TLS: %v, want UNAVAILABLE", err)
	}
	if err := register("box", toolbox(t, demanding(t, before))); err != nil {
		t.Errorf("a node with a certificate, that wants one: %v", err)
	}
	shouts(t, g)
	next := toolbox(t, demanding(t, now))
	if err := register("next", next); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("a node of another CA: %v, want UNAVAILABLE", err)
	}
	replace(now)
	await.True(t, "the other CA counts", func() bool { return register("next", next) == nil })
}

// demanding has a server present a certificate, and want one of its clients.
func demanding(t *testing.T, own servers.Certificates) grpc.ServerOption {
	t.Helper()
	c, err := certs.Listener(own.ServerCert, own.ServerKey, own.CA, []string{"h2"})
	if err != nil {
		t.Fatal(err)
	}
	return grpc.Creds(grpccreds.NewTLS(c.Config(true)))
}
