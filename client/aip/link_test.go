package aip

import (
	"context"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// connect has a gateway list the nodes of others.
func connect(t testing.TB, g *Gateway, others ...*Gateway) {
	t.Helper()
	for _, other := range others {
		if err := g.ConnectToGateway(await.Context(t), other.Address()); err != nil {
			t.Fatal(err)
		}
	}
}

// named starts gateways with ids.
func named(t testing.TB, ids ...string) (all []*Gateway) {
	t.Helper()
	for _, id := range ids {
		all = append(all, startGateway(t, GatewayConfig{ID: id, Backoff: Backoff{Min: time.Millisecond, Max: 50 * time.Millisecond}}))
	}
	return all
}

func TestNodesOfALinkedGatewayAreListedAndCalled(t *testing.T) {
	t.Parallel()
	gs := named(t, "a", "b")
	a, b := gs[0], gs[1]
	bob := startAgent(t, config(b, "bob"), echo)
	startToolbox(t, config(b, "box"), map[string]func(context.Context, string) (any, error){
		"up": func(_ context.Context, args string) (any, error) { return strings.ToUpper(args), nil },
	})
	connect(t, a, b)
	connect(t, a, b) // which changes nothing
	caller, ctx := newAgent(t, config(a, "alice")), await.Context(t)
	if err := caller.UpdatePeers(ctx, ""); err != nil {
		t.Fatal(err)
	}
	for id, p := range caller.Nodes() {
		if peerAddress(p) != a.Address() || len(p.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%s is listed as %v, want it at %s", id, p, a.Address())
		}
	}
	if got, err := answers(caller.askCall(ctx, "bob")); err != nil || len(got) != 2 {
		t.Errorf("bob answers %q, %v", got, err)
	}
	direct := caller.CallAt(ctx, peerAddress(caller.Nodes()["bob"]), "bob")
	defer direct.Close()
	direct.Start()
	direct.Stop()
	if got, err := answers(direct); err != nil || len(got) != 2 {
		t.Errorf("at the address that he is listed with bob answers %q, %v", got, err)
	}
	if resp, err := caller.CallTool(ctx, "box", "up", map[string]string{"a": "b"}); err != nil || TextOf(resp.GetContent()) != `{"A":"B"}` {
		t.Errorf("the tool answers %v, %v", resp, err)
	}
	told := subscribe(t, caller, "bob", "eve")
	startAgent(t, config(b, "eve"), echo)
	bob.cfg.Domain = "red"
	bob.UpdateInfo(ctx)
	bob.Close()
	for _, want := range []string{"ADDED eve  true", "UPDATED bob red true", "REMOVED bob  false"} {
		if got := told(); got != want {
			t.Errorf("alice is told %q, want %q", got, want)
		}
	}
	a.DisconnectFromGateway(b.Address())
	if got := a.Nodes(); len(got) != 0 {
		t.Errorf("without the link %v are listed", got)
	}
}

func TestAFailingNodeBehindALinkIsDeregisteredWhereItIsRegistered(t *testing.T) {
	t.Parallel()
	gs := named(t, "a", "b")
	bob := startAgent(t, config(gs[1], "bob"), echo)
	connect(t, gs[0], gs[1])
	call := newAgent(t, config(gs[0], "alice")).Call(await.Context(t), "bob")
	defer call.Close()
	call.Start()
	if _, err := call.Receive(); err != nil {
		t.Fatal(err)
	}
	kill(bob.node)
	last, err := call.Receive()
	if err != nil || last.GetSessionStatus() != StopResponse {
		t.Errorf("the last answer is %v, %v", last, err)
	}
	_, err = call.Receive()
	isStatus(t, "the session", err, codes.Unavailable, "")
	lists(t, gs[1], "bob", false)
	lists(t, gs[0], "bob", false)
}

func TestARingOfGatewaysHasNoLoop(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]bool{"one way": false, "both ways": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gs := named(t, "a", "b", "c")
			for i, g := range gs {
				connect(t, g, gs[(i+1)%3])
				if back {
					connect(t, g, gs[(i+2)%3])
				}
			}
			var nodes []*Agent
			for i, g := range gs {
				nodes = append(nodes, startAgent(t, config(g, fmt.Sprint("node", i)), echo))
			}
			for _, g := range gs {
				for i := range nodes {
					lists(t, g, fmt.Sprint("node", i), true)
				}
				caller := newAgent(t, config(g, "alice"))
				for i := range nodes {
					if got, err := answers(caller.askCall(await.Context(t), fmt.Sprint("node", i))); err != nil || len(got) != 2 {
						t.Errorf("at %s node %d answers %q, %v", g.ID(), i, got, err)
					}
				}
				_, err := answers(caller.askCall(await.Context(t), "nobody"))
				isStatus(t, "nobody", err, codes.NotFound, "Receiver not found")
			}
			for i, n := range nodes {
				n.Close()
				for _, g := range gs {
					lists(t, g, fmt.Sprint("node", i), false)
				}
			}
			for _, g := range gs {
				if got := slices.Collect(maps.Keys(g.Nodes())); len(got) != 0 {
					t.Errorf("%s lists %v, which are gone", g.ID(), got)
				}
			}
		})
	}
}

func TestNodesAreKnownFourHopsAway(t *testing.T) {
	t.Parallel()
	gs := named(t, "a", "b", "c", "d", "e", "f")
	startAgent(t, config(gs[0], "bob"), echo)
	for i := 1; i < len(gs); i++ {
		connect(t, gs[i], gs[i-1])
	}
	for i, g := range gs {
		caller := newAgent(t, config(g, "alice"))
		_, err := answers(caller.askCall(await.Context(t), "bob"))
		if i <= wire.MaxHops && err != nil {
			t.Errorf("%d hops away bob answers with %v", i, err)
		} else if i > wire.MaxHops {
			isStatus(t, "five hops away", err, codes.NotFound, "Receiver not found")
		}
	}
}

func TestACallThatHasComeThroughAGatewayDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	gs := named(t, "a", "b")
	startAgent(t, config(gs[1], "bob"), echo)
	startToolbox(t, config(gs[1], "box"), nil)
	startAgent(t, config(gs[0], "own"), echo)
	connect(t, gs[0], gs[1])
	for path, to := range map[string]string{"x,a": "bob", "w,x,y,z": "bob"} {
		ctx := metadata.AppendToOutgoingContext(await.Context(t), wire.PathKey, path)
		s, err := rawGateway(t, gs[0]).RouteAgentCalling(ctx)
		_, err = speak(s, err, quest(StartQuest, to))
		isStatus(t, "a session by "+path, err, codes.NotFound, "Receiver not found")
		_, err = rawGateway(t, gs[0]).RouteToolCalling(ctx, &ToolRequest{ReceiverId: "box"})
		isStatus(t, "a tool call by "+path, err, codes.NotFound, "Receiver not found")
		s, err = rawGateway(t, gs[0]).RouteAgentCalling(ctx)
		if all, err := speak(s, err, quest(StartQuest, "own"), quest(StopQuest, "own")); err != nil || len(all) != 2 {
			t.Errorf("by %s the gateway's own node answers %v, %v", path, all, err)
		}
	}
}

func TestWhatIsRegisteredHereGoesBeforeWhatALinkHas(t *testing.T) {
	t.Parallel()
	gs := named(t, "a", "b")
	connect(t, gs[0], gs[1])
	who := func(name string) func(context.Context, *Session) error {
		return func(_ context.Context, s *Session) error {
			for range s.Messages() {
			}
			return s.Finish(Text(name))
		}
	}
	caller := newAgent(t, config(gs[0], "alice"))
	says := func(want string) {
		t.Helper()
		got, err := answers(caller.askCall(await.Context(t), "bob"))
		if err != nil || !slices.Equal(got, []string{"STOP_RESPONSE " + want}) {
			t.Errorf("bob answers %q, %v, want %q", got, err, want)
		}
	}
	startAgent(t, config(gs[1], "bob"), who("there"))
	lists(t, gs[0], "bob", true)
	says("there")
	told := subscribe(t, caller)
	here := startAgent(t, config(gs[0], "bob"), who("here"))
	says("here")
	here.Close()
	says("there")
	for range 2 {
		if got := told(); got != "UPDATED bob  true" {
			t.Errorf("alice is told %q, want UPDATED", got)
		}
	}
}

func TestALinkThatBreaksIsMadeAgain(t *testing.T) {
	t.Parallel()
	gs := named(t, "a", "b")
	startAgent(t, config(gs[1], "bob"), echo)
	connect(t, gs[0], gs[1])
	lists(t, gs[0], "bob", true)
	at := gs[1].Address()
	gs[1].Close()
	lists(t, gs[0], "bob", false)
	startGateway(t, GatewayConfig{ID: "b", Listen: at}) // with which bob registers again
	lists(t, gs[0], "bob", true)
}

// oldGateway is a gateway without this package, which knows no subscriptions.
type oldGateway struct {
	wire.UnimplementedGatewayServiceServer
	mu    sync.Mutex
	peers []*Peer
	paths []string
}

func (o *oldGateway) GetNodes(ctx context.Context, _ *wire.GetNodesRequest) (*wire.GetNodesResponse, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.paths = metadata.ValueFromIncomingContext(ctx, wire.PathKey)
	return &wire.GetNodesResponse{Peers: o.peers}, nil
}

func (o *oldGateway) has(ids ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.peers = nil
	for _, id := range ids {
		o.peers = append(o.peers, agentPeer(&AgentInfo{AgentId: id, Address: "there:1"}))
	}
}

func TestAGatewayWithoutSubscriptionsIsAskedAgainAndAgain(t *testing.T) {
	t.Parallel()
	old := &oldGateway{}
	old.has("bob", "me")
	address := serveRaw(t, func(s *grpc.Server) { wire.RegisterGatewayServiceServer(s, old) })
	g := startGateway(t, GatewayConfig{ID: "new", Poll: 5 * time.Millisecond})
	me := startAgent(t, config(g, "me"), echo)
	if err := g.ConnectToGateway(await.Context(t), address); err != nil {
		t.Fatal(err)
	}
	lists(t, g, "bob", true)
	old.has("eve")
	lists(t, g, "eve", true)
	lists(t, g, "bob", false)
	old.has("me") // which it may have from us
	lists(t, g, "eve", false)
	old.has()
	me.Close()
	lists(t, g, "me", false)
	old.mu.Lock()
	defer old.mu.Unlock()
	if !slices.Equal(old.paths, []string{"new"}) {
		t.Errorf("it is asked by the path %q, want new", old.paths)
	}
}

func TestAGatewayThatIsNotThereIsNotConnected(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	isStatus(t, "nobody there", g.ConnectToGateway(await.Context(t), closedPort(t)), codes.Unavailable, "")
	if err := g.ConnectToGateway(await.Context(t), "nowhere"); err == nil {
		t.Error("no address is taken for one")
	}
	late, err := NewGateway(GatewayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := late.ConnectToGateway(await.Context(t), g.Address()); err == nil {
		t.Error("a gateway connects that has not started")
	}
	ctx, cancel := context.WithCancel(await.Context(t))
	cancel()
	if err := g.ConnectToGateway(ctx, late.Address()); err == nil {
		t.Error("a gateway connects though nobody waits for it")
	}
	if err := g.ConnectToGateway(ctx, closedPort(t)); err == nil || errors.Is(err, ErrClosed) {
		t.Errorf("a gateway connects with %v though nobody waits for it", err)
	}
}

func TestLinkedGatewaysAgreeWhateverHasHappened(t *testing.T) {
	t.Parallel()
	gs := named(t, "a", "b", "c", "d")
	for i, g := range gs {
		connect(t, g, gs[(i+1)%4], gs[(i+2)%4], gs[(i+3)%4])
	}
	ctx := await.Context(t)
	addresses := make([]string, 5)
	for i := range addresses {
		addresses[i] = serveRaw(t, func(*grpc.Server) {})
	}
	id := func(n int) string { return fmt.Sprint("node", n) }
	for range 200 {
		g, n := rawGateway(t, gs[mathrand.IntN(len(gs))]), mathrand.IntN(len(addresses))
		if mathrand.IntN(2) == 0 {
			g.RegisterAgent(ctx, &AgentInfo{AgentId: id(n), Address: addresses[n]}) // refused where it is there
		} else {
			g.DeregisterNode(ctx, &wire.DeregisterNodeRequest{NodeId: id(n)})
		}
	}
	for n := range addresses {
		var there bool
		for _, g := range gs {
			l, _ := g.directory.find(id(n))
			there = there || l.member != nil
		}
		for _, g := range gs {
			lists(t, g, id(n), there)
		}
	}
}
