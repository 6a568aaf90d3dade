package member_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/member"
)

func jsonText(s string) json.RawMessage { return json.RawMessage(s) }

// pathIn returns the path that a call is given.
func pathIn(r *mcp.CallToolRequest) string {
	var in struct{ Path string }
	_ = json.Unmarshal(r.Params.Arguments, &in)
	return in.Path
}

// note writes a file, whole or not at all.
func note(file, text string) {
	if os.WriteFile(file+".new", []byte(text), 0o600) == nil {
		_ = os.Rename(file+".new", file)
	}
}

// logged collects a log.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// site is a cluster with one caller, and maybe a member.
type site struct {
	*agoratest.Cluster
	t      *testing.T
	caller *client.Client
	dir    string
	log    logged
	agent  string
	stop   context.CancelFunc
	ended  chan error
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), agent: "tool shed"}
	s.Cluster = agoratest.Start(t, agoratest.Options{Edges: 2, Grace: time.Hour, Node: edge.Config{Heartbeat: time.Minute}})
	c, err := client.Dial(await.Context(t), client.Config{URLs: []string{s.URL(1)}, Agent: "caller"})
	if err != nil {
		t.Fatal(err)
	}
	s.caller = c
	t.Cleanup(func() { c.Close() })
	return s
}

// stdio is a configuration whose server is this program.
func (s *site) stdio(how string) member.Config {
	return member.Config{Command: []string{os.Args[0]}, Env: []string{serverEnv + "=" + how, "NAMED=yes"}}
}

// file returns a path of the test's own.
func (s *site) file(name string) string { return filepath.Join(s.dir, name) }

// start runs a member beside the test.
func (s *site) start(cfg member.Config) {
	s.t.Helper()
	cfg.Client.URLs = []string{s.URL(0)}
	cfg.Log = slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	m, err := member.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.t.Context())
	s.stop, s.ended = stop, make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { s.ended <- m.Run(ctx) })
	s.t.Cleanup(func() {
		stop()
		running.Wait()
		if s.t.Failed() {
			text := s.log.String()
			s.t.Logf("the member's log:\n%s", text[:min(len(text), 8000)])
		}
	})
}

// join is start that waits until the member stands in the directory.
func (s *site) join(cfg member.Config) {
	s.t.Helper()
	s.start(cfg)
	s.listed("echo")
}

// listed waits until the directory has a tool of the member.
func (s *site) listed(tool string) (skill agora.Skill) {
	s.t.Helper()
	await.True(s.t, "the tool "+tool+" is listed", func() bool {
		var has bool
		skill, has = s.tools()[tool]
		return has
	})
	return skill
}

// tools returns the tools of the member that the directory has.
func (s *site) tools() map[string]agora.Skill {
	a, err := s.caller.AgentCard(await.Context(s.t), s.agent)
	all := map[string]agora.Skill{}
	if err == nil {
		for _, t := range a.Tools {
			all[t.Name] = t
		}
	}
	return all
}

// begin calls a tool.
func (s *site) begin(ctx context.Context, tool, arguments string) *client.Call {
	s.t.Helper()
	c, err := s.caller.CallTool(ctx, s.agent, tool, jsonText(arguments))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// call calls a tool, and returns what answers it.
func (s *site) call(tool, arguments string) string {
	s.t.Helper()
	return s.result(s.begin(await.Context(s.t), tool, arguments))
}

func (s *site) result(c *client.Call) string {
	s.t.Helper()
	a, err := c.Result(await.Context(s.t))
	if err != nil {
		e := agora.AsError(err)
		return fault(e.Code, e.Message)
	}
	return string(a.Body)
}

// next returns the next piece of an answer; "" behind the last.
func (s *site) next(c *client.Call) string {
	s.t.Helper()
	a, err := c.Next(await.Context(s.t))
	if errors.Is(err, io.EOF) {
		return ""
	}
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := a.Bytes()
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// there waits for a file.
func (s *site) there(file string) {
	s.t.Helper()
	await.True(s.t, file, func() bool { _, err := os.Stat(file); return err == nil })
}

// says waits until the log has a text.
func (s *site) says(what string) {
	s.t.Helper()
	await.True(s.t, "the log says "+what, func() bool { return strings.Contains(s.log.String(), what) })
}

// fault is an answer that is an error.
func fault(code agora.Code, message string) string {
	return fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`, code, message)
}
