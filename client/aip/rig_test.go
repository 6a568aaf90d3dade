package aip

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	wire "github.com/agora-relay/agora/wire/aip"
)

// startGateway starts a gateway whose times are so long that none of them passes, but for those that are set.
func startGateway(t testing.TB, cfg GatewayConfig) *Gateway {
	t.Helper()
	for d, long := range map[*time.Duration]time.Duration{
		&cfg.DialTimeout: time.Minute, &cfg.ProbeTimeout: time.Minute, &cfg.HeartbeatTimeout: time.Hour, &cfg.Poll: time.Hour, &cfg.Grace: -1,
	} {
		if *d == 0 {
			*d = long
		}
	}
	g, err := NewGateway(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	return g
}

// config is that of a node of a gateway, whose times are long as well. Nobody else is at its address once it is killed.
func config(g *Gateway, id string) Config {
	addr, err := servers.Addr()
	if err != nil {
		panic(err)
	}
	cfg := Config{ID: id, Listen: addr, RegisterTimeout: time.Minute, Heartbeat: time.Hour, Grace: -1}
	if g != nil {
		cfg.Gateways = []string{g.Address()}
	}
	return cfg
}

// newAgent returns an agent that is neither started nor registered: a caller.
func newAgent(t testing.TB, cfg Config) *Agent {
	t.Helper()
	a, err := NewAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// startAgent starts an agent, and registers it where its configuration names gateways.
func startAgent(t testing.TB, cfg Config, f func(context.Context, *Session) error) *Agent {
	t.Helper()
	a := newAgent(t, cfg)
	if f != nil {
		a.Handle(f)
	}
	startNode(t, a.node)
	return a
}

// startToolbox starts a toolbox with tools, and registers it where its configuration names gateways.
func startToolbox(t testing.TB, cfg Config, tools map[string]func(context.Context, string) (any, error)) *Toolbox {
	t.Helper()
	b, err := NewToolbox(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	for name, f := range tools {
		if err := b.AddTool(Tool{Name: name}, func(ctx context.Context, raw json.RawMessage) (any, error) { return f(ctx, string(raw)) }); err != nil {
			t.Fatal(err)
		}
	}
	startNode(t, b.node)
	return b
}

func startNode(t testing.TB, n *node) {
	t.Helper()
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if len(n.cfg.Gateways) == 0 {
		return
	}
	if err := n.Register(await.Context(t)); err != nil {
		t.Fatal(err)
	}
}

// kill ends a node as if its process had died: nobody is told.
func kill(n *node) {
	n.keeper.stop()
	n.registering.Lock()
	n.registered = false
	n.registering.Unlock()
	n.server.Stop()
}

// echo answers each message with its content, until the end.
func echo(_ context.Context, s *Session) error {
	for m := range s.Messages() {
		if m.GetSessionStatus() == StopQuest {
			return s.Finish(m.GetContent()...)
		}
		if err := s.Reply(m.GetContent()...); err != nil {
			return err
		}
	}
	return nil
}

// raw returns what calls a gateway, or a node, without this package.
func raw(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := dialer(nil, defaultMessage)(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func rawGateway(t testing.TB, g *Gateway) wire.GatewayServiceClient {
	return wire.NewGatewayServiceClient(raw(t, g.Address()))
}

// isStatus fails the test unless an error is a status with a code and a text; any text where it is empty.
func isStatus(t testing.TB, about string, err error, code codes.Code, text string) {
	t.Helper()
	if s := status.Convert(err); s.Code() != code || text != "" && s.Message() != text {
		t.Errorf("%s: %v %q, want %v %q", about, s.Code(), s.Message(), code, text)
	}
}

// answers reads a session to its end, and returns the texts of its answers, and its error.
func answers(c *Call) (texts []string, err error) {
	for m, err := range c.Messages() {
		if err != nil {
			return texts, err
		}
		texts = append(texts, m.GetSessionStatus().String()+" "+TextOf(m.GetContent()))
	}
	return texts, nil
}

// speak sends messages by a stream, and returns what comes, and its error; nil for a call that ends well.
func speak(s grpc.BidiStreamingClient[Message, Message], err error, messages ...*Message) (all []*Message, _ error) {
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		if err := s.Send(m); err != nil {
			break
		}
	}
	s.CloseSend()
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
}

// quest is a message of a session that alice has with an agent.
func quest(s SessionStatus, to string) *Message {
	return &Message{SenderId: "alice", ReceiverId: to, SessionId: "s1", SessionStatus: s, Content: []*ContentItem{Text("hi")}}
}

// lists waits until a gateway lists a node, or lists it no longer.
func lists(t testing.TB, g *Gateway, id string, want bool) {
	t.Helper()
	await.True(t, "the list of "+g.ID()+" with "+id, func() bool {
		_, there := g.directory.find(id)
		return there == want
	})
}

// serveRaw serves services without this package, and returns their address.
func serveRaw(t testing.TB, register func(*grpc.Server)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(serverOptions(defaultMessage)...)
	register(s)
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(l) })
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
	})
	return l.Addr().String()
}
