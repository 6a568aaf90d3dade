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
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// links an edge's cluster to a gateway.
func (s *site) links(k int, address string) {
	s.t.Helper()
	if err := s.door(k).Link(s.t.Context(), "", address); err != nil {
		s.t.Fatalf("link to %s: %v", address, err)
	}
}

// link returns how a link stands, as an edge has it; the zero one for none.
func (s *site) link(k int, address string) aip.LinkView {
	s.t.Helper()
	all, err := s.door(k).Links(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range all {
		if l.Address == address {
			return l
		}
	}
	return aip.LinkView{}
}

// pair is two clusters that are linked to each other, with a node and a toolbox each.
func pair(t *testing.T, edges int) (one, two *site) {
	t.Helper()
	one, two = open(t, setup{Options: agoratest.Options{Edges: edges}}), open(t, setup{Options: agoratest.Options{Edges: edges}})
	for i, s := range []*site{one, two} {
		name := []string{"one", "two"}[i]
		s.registered(0, "agent-"+name, startNode(t, &node{}))
		s.toolbox(edges-1, "box-"+name, startNode(t, &node{}), &wire.ToolInfo{Name: "echo"})
	}
	one.links(0, two.addrs[0])
	two.links(0, one.addrs[edges-1])
	for _, s := range []*site{one, two} {
		for k := range edges {
			s.lists(k, "agent-one", "agent-two", "box-one", "box-two")
		}
	}
	return one, two
}

// converses holds a session of three messages with an agent by an edge, and fails the test unless each is answered as it is.
func (s *site) converses(k int, with string) {
	s.t.Helper()
	c := s.session(k)
	for i, status := range []wire.AgentMessage_SessionStatus{wire.AgentMessage_START_QUEST, wire.AgentMessage_HOLD_QUEST, wire.AgentMessage_STOP_QUEST} {
		image := []byte{0, 255, 128, byte(i)}
		m := asks("caller", with, "s", status, &wire.ContentItem{Data: &wire.ContentItem_Image{Image: image}})
		if err := c.Send(m); err != nil {
			s.t.Fatal(err)
		}
		got, err := c.Recv()
		if err != nil || string(got.GetContent()[0].GetImage()) != string(image) {
			s.t.Fatalf("%s answers %v, %v", with, got, err)
		}
	}
	if all, err := ends(c); err != nil || len(all) > 0 {
		s.t.Errorf("the session with %s ends with %v, %v", with, all, err)
	}
}

// uses calls a tool by an edge.
func (s *site) uses(k int, box string) {
	s.t.Helper()
	out, err := s.gateway(k, "").RouteToolCalling(s.t.Context(), &wire.ToolRequest{SenderId: "caller", ReceiverId: box, SessionId: "s", ToolName: "echo", Arguments: `{"a": 1.0}`})
	if err != nil || out.GetContent()[0].GetText() != `{"a": 1.0}` {
		s.t.Fatalf("%s answers %v, %v", box, out, err)
	}
}

func TestLinkedClustersHaveEachOthersNodes(t *testing.T) {
	t.Parallel()
	one, two := pair(t, 2)
	for _, s := range []*site{one, two} {
		for k := range 2 {
			for _, id := range []string{"agent-one", "agent-two"} {
				s.converses(k, id)
			}
			for _, id := range []string{"box-one", "box-two"} {
				s.uses(k, id)
			}
		}
	}
	for k := range 2 {
		all := one.nodes(k)
		if at := all["agent-two"].GetAgentInfo(); at.GetAddress() != one.addrs[k] || at.GetName() != "Node agent-two" {
			t.Errorf("edge %d lists %v, want it at %s", k, at, one.addrs[k])
		}
		if at := all["box-two"].GetToolboxInfo(); at.GetAddress() != one.addrs[k] || at.GetTools()[0].GetName() != "echo" {
			t.Errorf("edge %d lists %v, want it at %s", k, at, one.addrs[k])
		}
		if at := all["agent-one"].GetAgentInfo().GetAddress(); at == one.addrs[k] {
			t.Errorf("its own node is listed at %s", at)
		}
		for id, p := range all {
			if len(p.ProtoReflect().GetUnknown()) > 0 {
				t.Errorf("%s is listed with what only gateways tell each other", id)
			}
		}
	}
	await.True(t, "the links say that they are up", func() bool {
		l := one.link(1, two.addrs[0])
		return l.State == aip.LinkUp && l.Edge != "" && l.Nodes == 2 && l.Offered == 2 && l.Error == ""
	})
}

// Updates pass, unknown fields with them; what changes shows to subscribers at every edge.
func TestALinkFollowsWhatChanges(t *testing.T) {
	t.Parallel()
	one, two := open(t, setup{Options: agoratest.Options{Edges: 2}}), open(t, setup{Options: agoratest.Options{Edges: 1}})
	one.links(1, two.addrs[0])
	w := one.subscribed(0, "", "w")
	n := startNode(t, &node{})
	for range 2 {
		info := &wire.AgentInfo{AgentId: "a", Address: n.addr}
		info.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "kept"))
		if _, err := two.gateway(0, "").RegisterAgent(t.Context(), info); err != nil {
			t.Fatal(err)
		}
		got, p := told(t, w)
		if got != "ADDED a" || p.GetAgentInfo().GetAddress() != one.addrs[0] || string(p.GetAgentInfo().ProtoReflect().GetUnknown()) != string(info.ProtoReflect().GetUnknown()) {
			t.Errorf("told %s: %v", got, p)
		}
		two.updates(0, "a", n, "new")
		if got, p := told(t, w); got != "UPDATED a" || p.GetAgentInfo().GetDescription() != "new" {
			t.Errorf("told %s: %v", got, p)
		}
		one.converses(0, "a")
		two.deregisters(0, "a")
		tells(t, w, "REMOVED a")
		if all, err := ends(one.startedSession(0, "a")); status.Code(err) != codes.NotFound || len(all) > 0 {
			t.Errorf("called then it is %v, %v", all, err)
		}
	}
	c := agoratest.Connect(t, agoratest.Direct{}, two.URL(0), "agent_id=talker", nil)
	tells(t, w, "ADDED talker")
	c.Close(1000)
	tells(t, w, "REMOVED talker")
}

// startedSession returns a session that has begun.
func (s *site) startedSession(k int, with string) wire.GatewayService_RouteAgentCallingClient {
	s.t.Helper()
	c := s.session(k)
	if err := c.Send(asks("caller", with, "s", wire.AgentMessage_START_QUEST, text("hello"))); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// Agents of other dialects write to a node behind a link as to any: by its mailbox.
func TestAgentsOfOtherDialectsReachWhatIsLinked(t *testing.T) {
	t.Parallel()
	one, two := pair(t, 2)
	c := one.guarded(1, "talker")
	c.Send(`{"type":"send","to":"agent-two","payload":{"request_id":"r","text":"hello"}}`)
	c.Await(`{"type":"reply","from":"agent-two","request_id":"r"}`)
	c.Send(`{"type":"call_tool","id":"t","to":"box-two","tool_name":"echo","arguments":{"a":1}}`)
	c.Await(`{"type":"tool.result"}`)
	other := two.guarded(1, "listener")
	one.lists(0, "agent-one", "agent-two", "box-one", "box-two", "listener", "talker")
	c.Send(`{"type":"send","to":"listener","payload":{"request_id":"q","text":"over there"}}`)
	other.Await(`{"type":"message","from":"talker"}`)
}

// An id that is here goes before one of a link, whenever it comes; when it is gone the other one is there again.
func TestAnIDThatIsHereWins(t *testing.T) {
	t.Parallel()
	one, two := open(t, setup{Options: agoratest.Options{Edges: 2}}), open(t, setup{Options: agoratest.Options{Edges: 1}})
	first, later := startNode(t, &node{}), startNode(t, &node{})
	one.registered(0, "first", startNode(t, &node{}))
	two.registered(0, "first", first)
	two.registered(0, "later", later)
	one.links(0, two.addrs[0])
	one.lists(1, "first", "later")
	isHere := func(id string) bool {
		p := one.nodes(1)[id].GetAgentInfo()
		return p != nil && p.GetAddress() != one.addrs[1]
	}
	if !isHere("first") || isHere("later") {
		t.Errorf("it lists %v", one.nodes(1))
	}
	one.registered(1, "later", startNode(t, &node{}))
	if !isHere("later") {
		t.Error("one that has registered here is not listed at once")
	}
	two.updates(0, "later", later, "anew") // it is offered again
	two.updates(0, "first", first, "anew")
	two.registered(0, "sign", startNode(t, &node{}))
	one.lists(1, "first", "later", "sign")
	if !isHere("first") || !isHere("later") {
		t.Errorf("then it lists %v", one.nodes(1))
	}
	for _, id := range []string{"first", "later"} {
		one.deregisters(1, id)
		await.True(t, id+" is that of the link again", func() bool {
			p := one.nodes(1)[id].GetAgentInfo()
			return p != nil && p.GetAddress() == one.addrs[1]
		})
		one.converses(0, id)
	}
}

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
	p := agoratest.NewProxy(t, two.addrs[1])
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
		card, err := a.Agent(t.Context(), "both")
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

// Tenants share no links.
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
