package aip

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// quick is a configuration of a node that soon tries again.
func quick(id string, gateways ...string) Config {
	return Config{ID: id, Gateways: gateways, Heartbeat: 10 * time.Millisecond, Backoff: Backoff{Min: time.Millisecond, Max: 20 * time.Millisecond}, RegisterTimeout: time.Minute, Grace: -1}
}

// serve runs a node until the test ends or stop is called, which returns what it ended with.
func serve(t testing.TB, n *node) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return await.Recv(t, "the end of "+n.ID(), ended)
	})
	t.Cleanup(func() { stop() })
	return stop
}

func TestANodeThatIsForgottenRegistersAgain(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := newAgent(t, quick("bob", g.Address()))
	stop := serve(t, bob.node)
	for range 3 {
		lists(t, g, "bob", true)
		told := subscribe(t, newAgent(t, config(g, "alice")), "bob")
		if resp, err := rawGateway(t, g).DeregisterNode(await.Context(t), &wire.DeregisterNodeRequest{NodeId: "bob"}); err != nil || !resp.GetSuccess() {
			t.Fatalf("deregistered: %v, %v", resp, err)
		}
		if got := []string{told(), told()}; !slices.Equal(got, []string{"REMOVED bob  false", "ADDED bob  true"}) {
			t.Errorf("alice is told %q", got)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("bob ends with %v", err)
	}
	if _, there := g.directory.find("bob"); there {
		t.Error("bob has gone, and is listed")
	}
}

func TestAnUpdateRegistersANodeThatIsForgotten(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := startAgent(t, config(g, "bob"), echo)
	if _, err := rawGateway(t, g).DeregisterNode(await.Context(t), &wire.DeregisterNodeRequest{NodeId: "bob"}); err != nil {
		t.Fatal(err)
	}
	bob.cfg.Description = "new"
	if err := bob.UpdateInfo(await.Context(t)); err != nil || g.Agents()["bob"].GetDescription() != "new" {
		t.Errorf("%v, and listed is %v", err, g.Agents())
	}
}

func TestANodeThatIsRefusedDeregistersNobody(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), echo)
	other := newAgent(t, config(g, "bob"))
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	isStatus(t, "another bob", other.Register(await.Context(t)), codes.AlreadyExists, "Agent [bob] already registered.")
	other.Close()
	if len(g.Nodes()) != 1 {
		t.Error("the first one is listed no longer")
	}
}

func TestANodeGoesToAnotherGatewayWhenItsOwnIsGone(t *testing.T) {
	t.Parallel()
	gs := []*Gateway{startGateway(t, GatewayConfig{}), startGateway(t, GatewayConfig{}), startGateway(t, GatewayConfig{})}
	cfg := quick("bob", gs[0].Address()+", "+gs[1].Address(), gs[2].Address())
	cfg.Heartbeat = time.Hour // it is the broken channel that tells
	seen := make(chan Status, 99)
	cfg.OnStatus = func(s Status) { seen <- s }
	bob := newAgent(t, cfg)
	serve(t, bob.node)
	for left := len(gs); left > 0; left-- {
		var s Status
		for s = await.Recv(t, "a registration", seen); s.Err != nil; s = await.Recv(t, "a registration", seen) {
		}
		at := slices.IndexFunc(gs, func(g *Gateway) bool { return g.Address() == s.Gateway })
		if at < 0 {
			t.Fatalf("bob is registered at %q, which is none of the gateways that are left", s.Gateway)
		}
		lists(t, gs[at], "bob", true)
		if err := bob.UpdatePeers(await.Context(t), ""); err != nil || len(bob.Nodes()) != 1 {
			t.Errorf("he knows %v, %v, want himself", bob.Nodes(), err)
		}
		gs[at].Close()
		gs = slices.Delete(gs, at, at+1)
	}
}

func TestANodeComesBackToAGatewayThatComesBack(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	serve(t, newAgent(t, quick("bob", g.Address())).node)
	for range 2 {
		lists(t, g, "bob", true)
		g.Close()
		g = startGateway(t, GatewayConfig{Listen: g.Address()})
	}
	lists(t, g, "bob", true)
}

func TestServeWaitsForAGateway(t *testing.T) {
	t.Parallel()
	at := closedPort(t)
	bob := newAgent(t, quick("bob", at))
	stop := serve(t, bob.node)
	await.True(t, "bob to listen", func() bool { return bob.Address() != "" })
	g := startGateway(t, GatewayConfig{Listen: at})
	lists(t, g, "bob", true)
	if err := stop(); err != nil {
		t.Errorf("bob ends with %v", err)
	}
	if got := g.Nodes(); len(got) != 0 {
		t.Errorf("%v are listed, want nobody", got)
	}
	early := newAgent(t, quick("eve", closedPort(t)))
	if err := serve(t, early.node)(); err != nil {
		t.Errorf("who never finds a gateway ends with %v", err)
	}
}

func TestServeEndsWhereAnotherNodeHasTheId(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), echo)
	b, err := NewToolbox(config(g, "bob"))
	if err != nil {
		t.Fatal(err)
	}
	isStatus(t, "another bob", b.Serve(await.Context(t)), codes.AlreadyExists, "Tool [bob] already registered.")
}

func TestANodeThatStartsAnewAtItsAddressIsTheSame(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	old := startAgent(t, config(g, "bob"), echo)
	kill(old.node)
	cfg := config(g, "bob")
	cfg.Listen, cfg.Description = old.Address(), "the new one"
	bob := startAgent(t, cfg, echo)
	if err := bob.Register(await.Context(t)); err != nil {
		t.Fatal(err)
	}
	if got := g.Agents()["bob"].GetDescription(); got != "the new one" {
		t.Errorf("bob is %q, want the new one", got)
	}
	if got, err := answers(newAgent(t, config(g, "alice")).askCall(await.Context(t), "bob")); err != nil || len(got) != 2 {
		t.Errorf("bob answers %q, %v", got, err)
	}
}

func TestASilentGatewayIsLeft(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // the one who connects waits for ever
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	g := startGateway(t, GatewayConfig{})
	cfg := quick("bob", mute.Addr().String())
	cfg.RegisterTimeout = 50 * time.Millisecond
	bob := newAgent(t, cfg)
	if err := bob.Start(); err != nil {
		t.Fatal(err)
	}
	if err := bob.Register(await.Context(t)); err == nil {
		t.Error("a gateway that says nothing registers bob")
	}
	await.True(t, "a registration at the other gateway", func() bool { return bob.Register(await.Context(t), mute.Addr().String(), g.Address()) == nil })
	lists(t, g, "bob", true)
}

// seenTokens is what a gateway and an agent were shown as credentials.
type seenTokens struct {
	wire.UnimplementedGatewayServiceServer
	mu   sync.Mutex
	seen map[string][]string // by the method
}

func (s *seenTokens) note(ctx context.Context, method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[method] = metadata.ValueFromIncomingContext(ctx, "authorization")
}

func TestATokenIsForGatewaysOnly(t *testing.T) {
	t.Parallel()
	s := &seenTokens{seen: map[string][]string{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		s.note(stream.Context(), method[strings.LastIndex(method, "/")+1:])
		return status.Error(codes.Unauthenticated, "no")
	}))
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(l) })
	defer serving.Wait()
	defer server.Stop()
	cfg := config(nil, "alice")
	cfg.Gateways, cfg.Token = []string{l.Addr().String()}, "secret"
	alice, ctx := newAgent(t, cfg), await.Context(t)
	isStatus(t, "Serve", alice.Serve(ctx), codes.Unauthenticated, "no")
	alice = newAgent(t, cfg)
	answers(alice.askCall(ctx, "bob"))
	alice.CallTool(ctx, "box", "t", nil)
	direct := alice.CallAt(ctx, l.Addr().String(), "bob")
	defer direct.Close()
	direct.Start()
	answers(direct)
	tools := alice.ToolsAt(l.Addr().String(), "box")
	defer tools.Close()
	tools.Call(ctx, "t", nil)
	g := startGateway(t, GatewayConfig{Token: "links too"})
	g.ConnectToGateway(ctx, l.Addr().String())
	s.mu.Lock()
	defer s.mu.Unlock()
	for method, want := range map[string]string{
		"RegisterAgent": "Bearer secret", "RouteAgentCalling": "Bearer secret", "RouteToolCalling": "Bearer secret", "CallAgent": "", "CallTool": "",
		"SubscribeToUpdates": "Bearer links too", "GetNodes": "Bearer links too",
	} {
		got, asked := s.seen[method]
		if !asked || strings.Join(got, "|") != want {
			t.Errorf("%s (called: %v) was shown %q, want %q", method, asked, got, want)
		}
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	t.Parallel()
	for about, cfg := range map[string]Config{
		"no id":                {},
		"the cluster's id":     {ID: "agora"},
		"a gateway of nothing": {ID: "x", Gateways: []string{"localhost:1,"}},
		"a gateway's URL":      {ID: "x", Gateways: []string{"http://localhost"}},
		"an address of port 0": {ID: "x", Address: "localhost:0"},
	} {
		if _, err := NewAgent(cfg); agora.AsError(err) == nil || agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("an agent with %s: %v, want INVALID_REQUEST", about, err)
		}
		if _, err := NewToolbox(cfg); agora.AsError(err) == nil || agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("a toolbox with %s: %v, want INVALID_REQUEST", about, err)
		}
	}
	for about, cfg := range map[string]GatewayConfig{"a comma in its id": {ID: "a,b"}, "no address": {Address: "x"}} {
		if _, err := NewGateway(cfg); err == nil {
			t.Errorf("a gateway with %s is taken", about)
		}
	}
	everywhere := newAgent(t, Config{ID: "x", Listen: "0.0.0.0:0"})
	if err := everywhere.Start(); err == nil {
		t.Error("an agent starts that nobody can dial")
	}
	named := newAgent(t, Config{ID: "x", Listen: "0.0.0.0:0", Address: "example.org:99"})
	if err := named.Start(); err != nil || named.Info().GetAddress() != "example.org:99" {
		t.Errorf("%v, and it is at %q", err, named.Info().GetAddress())
	}
}

func TestWhatIsClosedSaysSo(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob, ctx := startAgent(t, config(g, "bob"), echo), await.Context(t)
	alone := newAgent(t, Config{ID: "alone"})
	if err := alone.Register(ctx, g.Address()); !errors.Is(err, errNotStarted) {
		t.Errorf("a node that serves nowhere registers with %v", err)
	}
	if err := alone.UpdatePeers(ctx, ""); !errors.Is(err, errNoGateway) {
		t.Errorf("a node without a gateway asks with %v", err)
	}
	bob.Close()
	bob.Close()
	call := bob.Call(ctx, "bob")
	defer call.Close()
	_, toolErr := bob.CallTool(ctx, "box", "x", nil)
	_, _, receiveErr := bob.Receive(ctx)
	for about, err := range map[string]error{
		"Start": bob.Start(), "Register": bob.Register(ctx), "UpdatePeers": bob.UpdatePeers(ctx, ""), "Call": call.Start(), "CallTool": toolErr, "Receive": receiveErr,
		"Unsubscribe": bob.Unsubscribe(ctx), "UpdateInfo": bob.UpdateInfo(ctx), "Serve": bob.Serve(ctx),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, want %v", about, err, ErrClosed)
		}
	}
}
