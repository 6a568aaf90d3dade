package aip_test

import (
	"context"
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
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
	wire "github.com/agora-relay/agora/wire/aip"
)

// foreign is a gateway of somebody else's, that knows neither subscriptions nor paths.
type foreign struct {
	wire.UnimplementedGatewayServiceServer
	addr string

	mu    sync.Mutex // guards the fields below
	peers []*wire.Peer
	asked int
	paths []string
}

func startForeign(t *testing.T, g *foreign) *foreign {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr().String()
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	wire.RegisterGatewayServiceServer(server, g)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return g
}

// has says which agents it has.
func (g *foreign) has(ids ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peers = nil
	for _, id := range ids {
		g.peers = append(g.peers, &wire.Peer{InfoType: &wire.Peer_AgentInfo{AgentInfo: &wire.AgentInfo{AgentId: id, Address: "10.0.0.1:50051"}}})
	}
}

// GetNodes implements the protocol's method.
func (g *foreign) GetNodes(context.Context, *wire.GetNodesRequest) (*wire.GetNodesResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return &wire.GetNodesResponse{Peers: g.peers}, nil
}

// RouteAgentCalling implements the protocol's method.
func (g *foreign) RouteAgentCalling(s wire.GatewayService_RouteAgentCallingServer) error {
	g.mu.Lock()
	g.paths = append(g.paths, metadata.ValueFromIncomingContext(s.Context(), "agora-aip-path")...)
	g.mu.Unlock()
	return echo(s)
}

func TestAGatewayWithoutSubscriptionsIsPolled(t *testing.T) {
	t.Parallel()
	g := startForeign(t, new(foreign))
	g.has("a", "b")
	s := open(t, setup{Options: agoratest.Options{Edges: 2}, door: aip.Config{GatewayID: "me", Poll: 50 * time.Millisecond, Links: []string{g.addr}}})
	s.lists(0, "a", "b")
	s.lists(1, "a", "b")
	s.converses(0, "a")
	s.converses(1, "b")
	g.has("b", "c", "", strings.Repeat("x", 1000))
	s.lists(1, "b", "c")
	await.True(t, "the link says that it polls", func() bool { return s.link(0, g.addr).State == aip.LinkPolling })
	g.mu.Lock()
	if slices.ContainsFunc(g.paths, func(p string) bool { return p != "me" }) {
		t.Errorf("sessions came through %v", g.paths)
	}
	g.mu.Unlock()
	if err := s.door(1).Unlink(t.Context(), "", g.addr); err != nil {
		t.Fatal(err)
	}
	s.lists(0)
	if l := s.link(0, g.addr); l.Address != "" {
		t.Errorf("it is there still: %+v", l)
	}
	if err := s.door(0).Unlink(t.Context(), "", g.addr); agora.AsError(err).Code != agora.NotFound {
		t.Errorf("ended again it is %v", err)
	}
	s.AddEdge() // which has it in its settings
	s.lists(2, "b", "c")
}

// What a gateway that is away has had stays, as nobody can know.
func TestNodesOfAGatewayThatIsAwayStay(t *testing.T) {
	t.Parallel()
	one, two := open(t, setup{Options: agoratest.Options{Edges: 1}}), open(t, setup{Options: agoratest.Options{Edges: 2}})
	n := startNode(t, &node{})
	two.registered(0, "a", n)
	p := faultnet.NewProxy(t, two.addrs[1])
	one.links(0, p.Addr())
	one.lists(0, "a")
	p.Cut()
	await.True(t, "the link is down", func() bool { return one.link(0, p.Addr()).State == aip.LinkDown })
	if _, err := ends(one.startedSession(0, "a")); status.Code(err) != codes.Unavailable {
		t.Errorf("a node behind it is %v", err)
	}
	one.lists(0, "a")
	two.deregisters(0, "a")
	two.registered(0, "b", n)
	p.Mend()
	one.lists(0, "b")
	one.converses(0, "b")
}

// Of two gateways that offer one id the one whose link is older has it.
func TestOfTwoLinksTheOlderHasAnID(t *testing.T) {
	t.Parallel()
	old, young := startForeign(t, new(foreign)), startForeign(t, new(foreign))
	s := open(t, setup{Options: agoratest.Options{Edges: 2}, door: aip.Config{Poll: 20 * time.Millisecond}})
	s.links(0, old.addr)
	s.polls(old.addr)
	s.links(1, young.addr)
	young.has("both", "sign")
	s.lists(0, "both", "sign")
	by := func() string {
		a, err := s.Node(0).Authenticate(t.Context(), edge.Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		card, err := a.Directory().Card(t.Context(), "both")
		if err != nil {
			return ""
		}
		return string(card.Metadata)
	}
	if !strings.Contains(by(), young.addr) {
		t.Errorf("the only gateway that has it is not its own: %s", by())
	}
	for range 2 {
		old.has("both")
		await.True(t, "the older one has it", func() bool { return strings.Contains(by(), old.addr) })
		old.has()
		await.True(t, "the younger one has it again", func() bool { return strings.Contains(by(), young.addr) })
	}
}

// polls waits until a link is up.
func (s *site) polls(address string) {
	s.t.Helper()
	await.True(s.t, "the link is up", func() bool { return s.link(0, address).State == aip.LinkPolling })
}

// Tenants share no links.
