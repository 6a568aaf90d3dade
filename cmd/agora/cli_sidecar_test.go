package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
)

func TestASidecarMakesAnHTTPAgentAMemberUntilItsSignal(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.url = strings.ReplaceAll(strings.ReplaceAll(c.url, "ws://", "http://"), "/ws", "")
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/card" {
			io.WriteString(w, `{"name":"plain","skills":[{"name":"greet","path":"/greet/{name}"}]}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"path":%q,"body":%q}`, r.URL.EscapedPath(), body)
	}))
	t.Cleanup(agent.Close)
	key := filepath.Join(t.TempDir(), "plain.key")
	ctx, signal := context.WithCancel(t.Context())
	side := c.start(ctx, nil, "sidecar", "--agent-url", agent.URL, "--id", "gate", "--p2p-addr", "/ip4/127.0.0.1/tcp/0", "--p2p-key", key, "--deliver", "/in", "--admin-addr", ":0", "--handoff.slashes", "--handoff.raw-string-body", "--log.level", "debug")
	c.present("gate")
	for payload, want := range map[string]string{
		`{"action":"handoff","method":"GET","path":"/greet/x"}`:                                                 `/greet/x`,
		`{"action":"call_tool","tool_name":"greet","arguments":{"name":"Ada"}}`:                                 `/greet/Ada`,
		`{"action":"handoff","method":"POST","path":"/greet/{name}","params":{"name":"a/b"},"input_data":"hi"}`: `"path":"/greet/a%2Fb","body":"hi"`,
		`{"q":1}`: `/in`,
	} {
		if r := c.ok("", "ask", "--from", "alice", "--to", "gate", "--payload", payload); !strings.Contains(r.stdout, want) {
			t.Errorf("asked for %s it prints %q, want %s in it", payload, r.stdout, want)
		}
	}
	if r := c.run("", "ask", "--from", "alice", "--to", "gate", "--payload", `{"action":"handoff","method":"GET","path":"/in"}`); r.status != exit.NotFound || r.stdout != "" {
		t.Errorf("ask for no skill: %+v, want status %d", r, exit.NotFound)
	}
	signal()
	if r := side.wait(); r.status != 0 || !strings.Contains(r.stderr, "the agent is a member of the cluster") {
		t.Errorf("it ends with %+v", r)
	}
	if k, err := p2phost.KeyIn(key); err != nil || k == nil {
		t.Errorf("its key: %v", err)
	}
	await.True(t, "the agent has left", func() bool { return !strings.Contains(c.run("", "agents", "--json").stdout, `"id":"gate"`) })
}

func TestASidecarSaysWhatIsWrongWithItsFlags(t *testing.T) {
	t.Parallel()
	c := &verbs{t: t, url: "ws://127.0.0.1:1"}
	for want, args := range map[string][]string{
		"none of http":     {},
		"no path":          {"--agent-url", "http://127.0.0.1:1", "--deliver", "in"},
		"log.level":        {"--agent-url", "http://127.0.0.1:1", "--log.level", "loud"},
		"unknown flag":     {"--agent-url", "http://127.0.0.1:1", "--peer", "x"},
		"--client-cert an": {"--agent-url", "http://127.0.0.1:1", "--client-key", "x"},
	} {
		if r := c.run("", append([]string{"sidecar"}, args...)...); r.status != exit.Usage || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: %+v, want usage and %q", args, r, want)
		}
	}
}
