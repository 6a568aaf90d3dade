package aip_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
	wire "github.com/agora-relay/agora/wire/aip"
)

// endless is the lease of edges that are found to be gone, and not waited for.
const endless = time.Hour

// watchful is a lease under which edges look for others that are gone often.
const watchful = 3 * time.Second

// heldBy returns the edge that holds the session of a node, of those that live; -1 where none does.
func (s *site) heldBy(id string, among ...int) int {
	s.t.Helper()
	for _, k := range among {
		v, err := operator.New(s.Node(k)).InspectAgent(s.t.Context(), agora.DefaultTenant, agora.AgentID(id))
		if err != nil || v.Live == nil {
			continue
		}
		for _, k := range among {
			if v.Edge == s.Node(k).Config().ID {
				return k
			}
		}
	}
	return -1
}

// adopted waits until one of some edges holds the session of a node.
func (s *site) adopted(id string, among ...int) {
	s.t.Helper()
	await.True(s.t, fmt.Sprintf("%s is held by one of edges %d", id, among), func() bool { return s.heldBy(id, among...) >= 0 })
}

func TestASessionGoesOnWhenTheEdgeThatHoldsItsNodeIsKilled(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Grace: time.Minute, Leases: []time.Duration{endless}, Node: edge.Config{Lease: watchful}}})
	n := startNode(t, &node{})
	s.registered(0, "a", n)
	c := s.session(1)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_START_QUEST, text("before")))
	hears(t, c)
	s.CutEdge(0)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_HOLD_QUEST, text("behind")))
	if got := hears(t, c); got.GetContent()[0].GetText() != "behind" {
		t.Errorf("it goes on with %v", got)
	}
	if out, err := s.gateway(2, "").Heartbeat(t.Context(), &wire.HeartbeatRequest{SenderId: "a"}); err != nil || !out.GetSuccess() {
		t.Errorf("a heartbeat elsewhere: %v, %v", out, err)
	}
	s.adopted("a", 1, 2)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_STOP_QUEST))
	if more, err := ends(c); err != nil || len(more) != 1 {
		t.Errorf("its end: %v, %v", more, err)
	}
	s.lists(1, "a")
	al := s.socket(2, "al")
	al.Send(`{"type":"send","to":"a","payload":{"request_id":"r"}}`)
	al.Await(`{"type":"reply_chunk","from":"a"}`)
}

func TestASessionEndsAtTheOtherEndWhenItsEdgeIsKilled(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Grace: time.Minute, Leases: []time.Duration{0, endless}, Node: edge.Config{Lease: watchful}}})
	var h heard
	n := startNode(t, &node{agent: hearing(&h)})
	s.registered(0, "a", n)
	c := s.session(1)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_START_QUEST, text("before")))
	hears(t, c)
	s.CutEdge(1)
	_, err := ends(c)
	refused(t, "the caller is told", err, codes.Unavailable, "")
	await.True(t, "the node is told", func() bool {
		_, err := h.get()
		return err != nil
	})
	if got, _ := h.get(); len(got) != 1 {
		t.Errorf("the node was told %v", got)
	}
	s.lists(2, "a")
}

func TestNodesAreAdoptedWhenTheirEdgeDrainsAndSessionsEndInPeace(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Grace: time.Minute}})
	n := startNode(t, &node{})
	s.registered(0, "a", n)
	c := s.session(0)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_START_QUEST, text("before")))
	hears(t, c)
	var drained sync.WaitGroup
	drained.Go(func() { s.StopEdge(0) })
	s.adopted("a", 1)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_STOP_QUEST, text("last")))
	if more, err := ends(c); err != nil || len(more) != 1 || more[0].GetContent()[0].GetText() != "last" {
		t.Errorf("a session at an edge that drains: %v, %v", more, err)
	}
	drained.Wait()
	s.lists(1, "a")
}

// However often edges die, each node is held by one.
func TestNodesAreAdoptedAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 4, Grace: time.Minute, Leases: []time.Duration{endless}, Node: edge.Config{Lease: watchful}}})
	for i := range adoptions {
		s.registered(0, fmt.Sprint("node-", i), startNode(t, &node{}))
	}
	s.CutEdge(0)
	for i := range adoptions {
		id := fmt.Sprint("node-", i)
		s.adopted(id, 1, 2, 3)
		c := s.session(1 + i%3)
		says(t, c, asks("c", id, "s", wire.AgentMessage_START_QUEST), asks("c", id, "s", wire.AgentMessage_STOP_QUEST))
		if got, err := ends(c); err != nil || len(got) != 2 {
			t.Errorf("%s: %v, %v", id, got, err)
		}
	}
}

// away is what edges lose touch with.
var away = map[string]func(*site, int){
	"Redis": func(s *site, k int) { s.CutPresence(k) },
	"NATS":  func(s *site, k int) { s.CutLog(k) },
}

func TestSessionsWithNodesGoOnWhileNATSOrRedisIsAway(t *testing.T) {
	t.Parallel()
	for what, cut := range away {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := open(t, setup{Options: agoratest.Options{Edges: 2, Grace: time.Minute}})
			n, box, other := startNode(t, &node{}), startNode(t, &node{}), startNode(t, &node{})
			s.registered(0, "a", n)
			s.toolbox(0, "box", box)
			call := func() error {
				_, err := s.gateway(1, "").RouteToolCalling(t.Context(), &wire.ToolRequest{SenderId: "c", ReceiverId: "box"})
				return err
			}
			c := s.session(1)
			says(t, c, asks("c", "a", "s", wire.AgentMessage_START_QUEST, text("before")))
			hears(t, c)
			if err := call(); err != nil {
				t.Fatal(err)
			}
			for k := range 2 {
				cut(s, k)
			}
			says(t, c, asks("c", "a", "s", wire.AgentMessage_HOLD_QUEST, text("meanwhile")))
			hears(t, c)
			next := s.session(1)
			says(t, next, asks("c", "a", "t", wire.AgentMessage_START_QUEST, text("of one that was called of late")), asks("c", "a", "t", wire.AgentMessage_STOP_QUEST))
			if got, err := ends(next); err != nil || len(got) != 2 {
				t.Errorf("a session with who was called of late: %v, %v", got, err)
			}
			if err := call(); err != nil {
				t.Errorf("a tool of who was called of late: %v", err)
			}
			register := func() error {
				_, err := s.gateway(1, "").RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: "b", Address: other.addr})
				return err
			}
			await.True(t, "registrations are refused", func() bool { return status.Code(register()) == codes.Unavailable })
			for k := range 2 {
				s.MendEdge(k)
			}
			says(t, c, asks("c", "a", "s", wire.AgentMessage_STOP_QUEST))
			if _, err := ends(c); err != nil {
				t.Errorf("its end: %v", err)
			}
			await.True(t, "a node registers", func() bool { return register() == nil })
		})
	}
}

// Anyone who watches the health of an edge does not hold up its drain.
func TestAWatchOfHealthEndsWithTheDrain(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	c, err := grpc_health_v1.NewHealthClient(dial(t, s.addr(0), "")).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if is, err := c.Recv(); err != nil || is.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Fatalf("at first: %v, %v", is, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.door(0).Drain(ctx)
	}()
	last := grpc_health_v1.HealthCheckResponse_SERVING
	for {
		is, err := c.Recv()
		if err != nil {
			refused(t, "the watch", err, codes.Unavailable, "")
			break
		}
		last = is.GetStatus()
	}
	if last != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("last it was %v", last)
	}
	await.Recv(t, "the door has drained", drained)
}

// What an edge does to a node counts at once for the one who calls by it; what another edge does, soon.
func TestANodeThatIsGoneIsCalledNoMore(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	first, second := startNode(t, &node{}), startNode(t, &node{tool: func(context.Context, *wire.ToolRequest) (*wire.ToolResponse, error) {
		return &wire.ToolResponse{Content: []*wire.ContentItem{text("second")}}, nil
	}})
	call := func() (string, error) {
		out, err := s.gateway(1, "").RouteToolCalling(t.Context(), &wire.ToolRequest{SenderId: "c", ReceiverId: "box", Arguments: "first"})
		if err != nil {
			return "", err
		}
		return out.GetContent()[0].GetText(), nil
	}
	leave := func(k int) {
		t.Helper()
		if out, err := s.gateway(k, "").DeregisterNode(t.Context(), &wire.DeregisterNodeRequest{NodeId: "box"}); err != nil || !out.GetSuccess() {
			t.Fatalf("deregister at edge %d: %v, %v", k, out, err)
		}
	}
	for holder := range 2 {
		s.toolbox(holder, "box", first)
		await.True(t, "it is called", func() bool { got, err := call(); return err == nil && got == "first" })
		leave(1)
		_, err := call()
		refused(t, fmt.Sprintf("deregistered by the same edge, held by %d", holder), err, codes.NotFound, "Receiver not found")
	}
	s.toolbox(1, "box", first)
	if got, err := call(); got != "first" {
		t.Fatalf("registered anew: %q, %v", got, err)
	}
	leave(0)
	s.toolbox(0, "box", second)
	await.True(t, "the second is called", func() bool { got, err := call(); return err == nil && got == "second" })
}

// dialled counts the connections that a server has. It is its stats.Handler.
type dialled struct{ atomic.Int64 }

func (*dialled) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*dialled) HandleRPC(context.Context, stats.RPCStats)                         {}
func (*dialled) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (d *dialled) HandleConn(_ context.Context, e stats.ConnStats) {
	if _, is := e.(*stats.ConnBegin); is {
		d.Add(1)
	}
}

// A node that goes between being dialled and being registered must not be taken for one that is there: what is sent to
// it waits for its return.
func TestANodeThatIsLostWhileItsSessionIsOpenedIsNotThere(t *testing.T) {
	t.Parallel()
	s := open(t, setup{
		Options: agoratest.Options{Edges: 1, Grace: time.Hour, Node: edge.Config{Heartbeat: time.Hour, Timeout: time.Hour}}, door: aip.Config{HeartbeatTimeout: time.Hour},
	})
	for k := range 50 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		id, conns := fmt.Sprint("n", k), new(dialled)
		server := grpc.NewServer(grpc.StatsHandler(conns))
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(l) })
		s.HoldPresence(0, true)
		told := make(chan error, 1)
		serving.Go(func() {
			_, err := s.gateway(0, "").RegisterAgent(await.Context(t), &wire.AgentInfo{AgentId: id, Address: l.Addr().String()})
			told <- err
		})
		await.True(t, "the edge has dialled it", func() bool { return conns.Load() > 0 || len(told) > 0 })
		server.Stop()
		s.HoldPresence(0, false)
		err = await.Recv(t, "its registration is answered", told)
		serving.Wait()
		if err != nil { // the edge has not known yet that it was there
			continue
		}
		await.True(t, "it is away", func() bool {
			found, err := s.Node(0).Config().Presence.Addressees.Lookup(t.Context(), agora.DefaultTenant, agora.AgentID(id))
			return err == nil && found.State != presence.Online
		})
		return
	}
	t.Error("no node was registered")
}
