package agenttools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// The two generations of the protocol.
const (
	generation1 = "2025-11-25"
	generation2 = "2026-07-28"
)

// often is so often that a test waits for no refresh.
const often = 20 * time.Millisecond

func startCluster(t *testing.T) *agoratest.Cluster {
	t.Helper()
	return agoratest.Start(t, agoratest.Options{Edges: 1})
}

// dial connects an agent with tools; the test's end closes it.
func dial(t *testing.T, url, id string, tools ...agora.Skill) *client.Client {
	t.Helper()
	c, err := client.Dial(await.Context(t), client.Config{
		URLs: []string{url}, Agent: id, Card: client.Card{Tools: tools}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// answers has an agent answer what it is sent, until the test ends.
func answers(t *testing.T, c *client.Client, f func(ctx context.Context, m *client.Message)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Handle(ctx, f); !errors.Is(err, context.Canceled) && !errors.Is(err, client.ErrClosed) {
			t.Errorf("Handle = %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// request is what an agent is sent when one of its tools is called.
type request struct {
	Tool      string          `json:"tool_name"`
	Arguments json.RawMessage `json:"arguments"`
}

func requestOf(m *client.Message) (r request) {
	_ = json.Unmarshal(m.Payload, &r) // a test sees that it has no name then
	return r
}

// host is a host of a model that has a server with the tools of agents.
type host struct {
	*mcp.ClientSession
	t       *testing.T
	catalog *Catalog
	server  *mcp.Server
	changes atomic.Int64 // how often the list of tools has changed
	said    chan string  // progress
}

// start has a host connect to a server whose tools are kept in step until the test ends.
func start(t *testing.T, c Agents, cfg Config, generation string) *host {
	t.Helper()
	h := prepare(t, c, cfg)
	h.connect(generation)
	h.serve()
	return h
}

// prepare makes a server that has the tools that there are.
func prepare(t *testing.T, c Agents, cfg Config) *host {
	t.Helper()
	h := newHost(t, c, cfg)
	if err := h.catalog.Prepare(await.Context(t), h.server); err != nil {
		t.Fatalf("Prepare = %v", err)
	}
	return h
}

func newHost(t *testing.T, c Agents, cfg Config) *host {
	h := &host{t: t, catalog: New(c, cfg), said: make(chan string, 1024)}
	h.catalog.progress = 0
	h.server = mcp.NewServer(&mcp.Implementation{Name: "agora", Version: "1"},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}})
	return h
}

func (h *host) serve() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.catalog.Serve(ctx, h.server) }()
	h.t.Cleanup(func() {
		cancel()
		if err := await.Recv(h.t, "the end of Serve", done); !errors.Is(err, context.Canceled) {
			h.t.Errorf("Serve = %v, want the context's error", err)
		}
	})
}

func (h *host) connect(generation string) {
	h.t.Helper()
	here, there := mcp.NewInMemoryTransports()
	serving, err := h.server.Connect(await.Context(h.t), there, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { h.changes.Add(1) },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { h.said <- r.Params.Message },
	})
	h.ClientSession, err = c.Connect(await.Context(h.t), here, &mcp.ClientSessionOptions{ProtocolVersion: generation})
	if err != nil {
		h.t.Fatal(err)
	}
	if got := h.InitializeResult().ProtocolVersion; got != generation {
		h.t.Fatalf("the host speaks %s, want %s", got, generation)
	}
	h.t.Cleanup(func() {
		h.Close()
		_ = serving.Wait() // however it ended
	})
}

// names returns the names of the tools that the host sees.
func (h *host) names() string {
	h.t.Helper()
	var names []string
	for x, err := range h.Tools(await.Context(h.t), nil) {
		if err != nil {
			h.t.Fatal(err)
		}
		names = append(names, x.Name)
	}
	return strings.Join(names, " ")
}

// sees waits until the host sees tools of these names, in this order.
func (h *host) sees(names string) {
	h.t.Helper()
	await.True(h.t, "tools "+names, func() bool { return h.names() == names })
}

// call calls a tool and returns the result as text: each content, and the structured content.
func (h *host) call(tool string, arguments any) string {
	h.t.Helper()
	r, err := h.CallTool(await.Context(h.t), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		h.t.Fatalf("the call of %s ended with an error of the protocol: %v", tool, err)
	}
	return shown(r)
}

func shown(r *mcp.CallToolResult) string {
	var all []string
	if r.IsError {
		all = append(all, "error")
	}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			all = append(all, c.Text)
		case *mcp.ImageContent:
			all = append(all, fmt.Sprintf("<%s %s>", c.MIMEType, c.Data))
		case *mcp.AudioContent:
			all = append(all, fmt.Sprintf("<%s %s>", c.MIMEType, c.Data))
		case *mcp.EmbeddedResource:
			all = append(all, fmt.Sprintf("<%s %s %s>", c.Resource.URI, c.Resource.MIMEType, c.Resource.Blob))
		}
	}
	if r.StructuredContent != nil {
		b, _ := json.Marshal(r.StructuredContent) // it was decoded from JSON
		all = append(all, "structured "+string(b))
	}
	return strings.Join(all, " | ")
}
