package aip_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/rest"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/servers"
	wire "github.com/agora-relay/agora/wire/aip"
)

// site is a cluster whose edges have the door, beside those for plain HTTP, and for WebSockets at /guarded.
type site struct {
	*agoratest.Cluster
	t testing.TB

	mu      sync.Mutex // guards the fields below
	addrs   []string
	doors   []*aip.Door
	clients map[client]wire.GatewayServiceClient
}

// setup says what a site is to be like. The zero value will do.
type setup struct {
	agoratest.Options
	door aip.Config
}

// open starts a site, which ends with the test.
func open(t testing.TB, s setup) *site {
	t.Helper()
	at := &site{t: t}
	s.Doors = []func(agoratest.Entry) (agoratest.Opened, error){
		func(e agoratest.Entry) (agoratest.Opened, error) { return at.opens(e, s) },
	}
	at.Cluster = agoratest.Start(t, s.Options)
	return at
}

// opened is the doors of one edge.
type opened struct {
	*web.Kit
	door    *aip.Door
	guarded *ws.Door
	serving sync.WaitGroup
}

// Drain empties them.
func (o *opened) Drain(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { o.door.Drain(ctx) })
	o.Kit.Drain(ctx)
	all.Wait()
}

// Close ends all of them.
func (o *opened) Close() {
	o.door.Close()
	o.Kit.Close()
	o.guarded.Close()
}

// Wait returns when nothing of them runs.
func (o *opened) Wait() {
	o.door.Wait()
	o.serving.Wait()
	o.Kit.Wait()
	o.guarded.Wait()
}

func (s *site) opens(e agoratest.Entry, o setup) (agoratest.Opened, error) {
	c := e.Node.Config()
	k := web.New(e.Node, web.Config{})
	carriers := carrier.New(tools.NewGuard(tools.GuardConfig{Presence: c.Presence, Now: c.Broker.Now}))
	e.Node.Screens(carriers.Screen)
	rest.Mount(k, e.Mux, carriers)
	guarded := ws.New(e.Node, ws.Config{Carriers: carriers})
	e.Mux.Handle("/guarded", guarded)
	o.door.Carriers = carriers
	o.door.HeartbeatTimeout = cmp.Or(o.door.HeartbeatTimeout, time.Hour) // nodes of tests are silent
	l, err := e.Listen()
	if err != nil {
		return nil, err
	}
	d := &opened{Kit: k, door: aip.New(e.Node, o.door), guarded: guarded}
	d.serving.Go(func() {
		if err := d.door.Serve(l); err != nil {
			s.t.Errorf("serve: %v", err)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs, s.doors = append(s.addrs, l.Addr().String()), append(s.doors, d.door)
	return d, nil
}

// door returns the door of edge k.
func (s *site) door(k int) *aip.Door {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doors[k]
}

// gateway returns a client of edge k, with a token where that is not empty.
func (s *site) gateway(k int, token string) wire.GatewayServiceClient {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := client{s.addrs[k], token}
	c := s.clients[at]
	if c == nil {
		c = wire.NewGatewayServiceClient(dial(s.t, at.addr, token))
		if s.clients == nil {
			s.clients = map[client]wire.GatewayServiceClient{}
		}
		s.clients[at] = c
	}
	return c
}

// addr returns where the door of edge k listens.
func (s *site) addr(k int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addrs[k]
}

// client names a client of an edge.
type client struct{ addr, token string }

// dial returns a connection that ends with the test.
func dial(t testing.TB, addr, token string) *grpc.ClientConn {
	t.Helper()
	o := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20))}
	if token != "" {
		o = append(o, grpc.WithPerRPCCredentials(bearer(token)))
	}
	c, err := grpc.NewClient("passthrough:///"+addr, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// bearer presents a token.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// node is an agent and a toolbox of the protocol, by bare gRPC: what it does with a call is the test's. By default it
// answers each message of a session by its own content, and a tool by its arguments.
type node struct {
	wire.UnimplementedAgentServiceServer
	wire.UnimplementedToolServiceServer
	addr   string
	server *grpc.Server
	stop   func()

	agent func(wire.AgentService_CallAgentServer) error
	tool  func(context.Context, *wire.ToolRequest) (*wire.ToolResponse, error)

	mu    sync.Mutex // guards the fields below
	heads []metadata.MD
}

// startNode starts a node on loopback, until the test is over.
func startNode(t testing.TB, n *node) *node {
	t.Helper()
	if n.addr == "" {
		addr, err := servers.Addr() // where nobody else is once it has stopped
		if err != nil {
			t.Fatal(err)
		}
		n.addr = addr
	}
	l, err := net.Listen("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	n.server = grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.MaxSendMsgSize(64<<20), grpc.WaitForHandlers(true))
	wire.RegisterAgentServiceServer(n.server, n)
	wire.RegisterToolServiceServer(n.server, n)
	var serving sync.WaitGroup
	serving.Go(func() { _ = n.server.Serve(l) })
	n.stop = sync.OnceFunc(func() {
		n.server.Stop()
		serving.Wait()
	})
	t.Cleanup(n.stop)
	return n
}

// CallAgent implements the protocol's service.
func (n *node) CallAgent(s wire.AgentService_CallAgentServer) error {
	head, _ := metadata.FromIncomingContext(s.Context())
	n.mu.Lock()
	n.heads = append(n.heads, head)
	n.mu.Unlock()
	if n.agent != nil {
		return n.agent(s)
	}
	return echo(s)
}

// echo answers each message of a session by its content, until the session is stopped.
func echo(s wire.AgentService_CallAgentServer) error {
	for {
		in, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out := reply(in, wire.AgentMessage_HOLD_RESPONSE, in.GetContent()...)
		if in.GetSessionStatus() == wire.AgentMessage_STOP_QUEST {
			out.SessionStatus = wire.AgentMessage_STOP_RESPONSE
		}
		if err := s.Send(out); err != nil {
			return err
		}
		if out.GetSessionStatus() == wire.AgentMessage_STOP_RESPONSE {
			return nil
		}
	}
}

// reply returns an answer to a message.
func reply(to *wire.AgentMessage, s wire.AgentMessage_SessionStatus, content ...*wire.ContentItem) *wire.AgentMessage {
	return &wire.AgentMessage{SenderId: to.GetReceiverId(), ReceiverId: to.GetSenderId(), SessionId: to.GetSessionId(), SessionStatus: s, Content: content}
}

// CallTool implements the protocol's service.
func (n *node) CallTool(ctx context.Context, in *wire.ToolRequest) (*wire.ToolResponse, error) {
	if n.tool != nil {
		return n.tool(ctx, in)
	}
	return &wire.ToolResponse{SenderId: in.GetReceiverId(), ReceiverId: in.GetSenderId(), SessionId: in.GetSessionId(), Content: []*wire.ContentItem{text(in.GetArguments())}}, nil
}

// text returns a text as an item of content.
func text(s string) *wire.ContentItem {
	return &wire.ContentItem{Data: &wire.ContentItem_Text{Text: s}}
}

// asks returns a message of a session.
func asks(from, to, session string, s wire.AgentMessage_SessionStatus, content ...*wire.ContentItem) *wire.AgentMessage {
	return &wire.AgentMessage{SenderId: from, ReceiverId: to, SessionId: session, SessionStatus: s, Content: content}
}

// registered has an edge register an agent that answers at a node.
func (s *site) registered(k int, id string, n *node) {
	s.t.Helper()
	if _, err := s.gateway(k, "").RegisterAgent(s.t.Context(), &wire.AgentInfo{AgentId: id, Address: n.addr, Name: "Node " + id, Domain: "tests"}); err != nil {
		s.t.Fatalf("register %s: %v", id, err)
	}
}

// toolbox has an edge register a toolbox that answers at a node.
func (s *site) toolbox(k int, id string, n *node, all ...*wire.ToolInfo) {
	s.t.Helper()
	if _, err := s.gateway(k, "").RegisterTool(s.t.Context(), &wire.ToolBoxInfo{ToolboxId: id, Address: n.addr, Name: "Box " + id, Domain: "tests", Tools: all}); err != nil {
		s.t.Fatalf("register %s: %v", id, err)
	}
}
