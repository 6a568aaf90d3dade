package host_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
	"github.com/agora-relay/agora/mcp/host"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func startCluster(t *testing.T) *agoratest.Cluster {
	t.Helper()
	return agoratest.Start(t, agoratest.Options{Grace: time.Minute, Node: edge.Config{Heartbeat: time.Minute}})
}

// dial connects an agent that is no model.
func dial(t *testing.T, c *agoratest.Cluster, id string) *client.Client {
	t.Helper()
	a, err := client.Dial(await.Context(t), client.Config{URLs: c.URLs(), Agent: id, Patience: time.Hour, Stall: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// model is the client that a model's host has, and the host of it.
type model struct {
	t       *testing.T
	session *mcp.ClientSession
	line    *faultnet.Link
	stop    func()
}

// startModel starts a host of an agent, and a client of it as a model's host has one. change may be nil.
func startModel(t *testing.T, urls []string, id string, change func(*host.Config, *mcp.ClientOptions)) *model {
	t.Helper()
	m := &model{t: t, line: faultnet.New()}
	cfg := host.Config{Version: "1", Client: client.Config{
		URLs: urls, Agent: id, Dial: m.line.DialContext, Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 200 * time.Millisecond},
	}}
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	opts := &mcp.ClientOptions{}
	if change != nil {
		change(&cfg, opts)
	}
	near, far := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = host.New(cfg).Serve(ctx, far, nil) }) // it ends with ctx or the session
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts).Connect(ctx, near, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.session = session
	m.stop = sync.OnceFunc(func() {
		session.Close()
		cancel()
		work.Wait()
	})
	t.Cleanup(m.stop)
	return m
}

// kill ends the host as its death does: the cluster hears nothing more of it.
func (m *model) kill() {
	m.line.Cut()
	m.stop()
}

// call calls a tool and returns its result.
func (m *model) call(tool string, arguments map[string]any) *mcp.CallToolResult {
	m.t.Helper()
	r, err := m.session.CallTool(await.Context(m.t), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		m.t.Fatalf("%s: a protocol error: %v", tool, err)
	}
	return r
}

// text returns the text of a result.
func text(r *mcp.CallToolResult) string {
	if len(r.Content) != 1 {
		return ""
	}
	c, _ := r.Content[0].(*mcp.TextContent)
	return c.Text
}

// use calls a tool that must not fail, and reads the structure of its result.
func use[V any](m *model, tool string, arguments map[string]any) (v V) {
	m.t.Helper()
	r := m.call(tool, arguments)
	if r.IsError {
		m.t.Fatalf("%s: %s", tool, text(r))
	}
	b, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil || text(r) == "" {
		m.t.Fatalf("%s: %v, text %q", tool, err, text(r))
	}
	return v
}

// fails calls a tool that must fail, and returns what it says.
func (m *model) fails(tool string, arguments map[string]any) string {
	m.t.Helper()
	r := m.call(tool, arguments)
	if !r.IsError {
		m.t.Fatalf("%s does not fail: %s", tool, text(r))
	}
	return text(r)
}

type message struct {
	Seq       uint64
	From      string
	Kind      string
	RequestID string `json:"request_id"`
	Text      string
	Payload   json.RawMessage
	Writing   bool
	Broken    string
	Again     bool
	Offset    int
	Length    int
}

type mail struct {
	Messages     []message
	More         int
	Acknowledged int
	Left         int
	Trouble      string
}

type object = map[string]any
