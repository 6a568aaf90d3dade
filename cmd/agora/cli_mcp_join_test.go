package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/await"
)

func TestAToolServerIsAnAgentWhoseToolsAreCalled(t *testing.T) {
	t.Parallel()
	c := &verbs{t: t, url: startDev(t).public[0]}
	tools := mcp.NewServer(&mcp.Implementation{Name: "adder", Version: "1"}, nil)
	type in struct{ A, B int }
	mcp.AddTool(tools, &mcp.Tool{Name: "add", Description: "adds"}, func(_ context.Context, _ *mcp.CallToolRequest, i in) (*mcp.CallToolResult, struct{ Sum int }, error) {
		return nil, struct{ Sum int }{i.A + i.B}, nil
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"mcp", "join", "--url", server.URL, "--edges", c.url}, strings.NewReader(""), t.Output(), t.Output())
	}()
	c.present("adder")
	if r := c.ok("", "call", "--to", "adder", "add", `{"A":2,"B":40}`); !strings.Contains(r.stdout, `"Sum":42`) {
		t.Errorf("call: %+v", r)
	}
	if r := c.ok("", "tools"); !strings.Contains(r.stdout, "adder") || !strings.Contains(r.stdout, "adds") {
		t.Errorf("tools: %+v", r)
	}
	if status := run(t.Context(), []string{"mcp", "join", "--url", server.URL, "--edges", c.url}, strings.NewReader(""), t.Output(), t.Output()); status == 0 {
		t.Error("a second one of the same id ended well")
	}
	stop()
	if status := await.Recv(t, "the end", done); status != 0 {
		t.Errorf("it ended with %d", status)
	}
	server.CloseClientConnections()
	server.Close()
}

func TestWrongWaysToJoinAToolServerAreToldAsSuch(t *testing.T) {
	t.Parallel()
	for _, bad := range []struct {
		args []string
		want int
	}{
		{nil, exit.Usage},
		{[]string{"--url", "http://127.0.0.1:1/", "--", "true"}, exit.Usage},
		{[]string{"--url", "ftp://x"}, exit.Usage},
		{[]string{"--env", "NO_SUCH_VARIABLE_HERE", "--", "true"}, exit.Usage},
		{[]string{"--env", "=x", "--", "true"}, exit.Usage},
		{[]string{"--max-calls", "0", "--", "true"}, exit.Usage},
		{[]string{"--call-timeout", "0s", "--", "true"}, exit.Usage},
		{[]string{"--", "/no/such/program"}, exit.Error},
		{[]string{"--", "true"}, exit.Error},
	} {
		var out output
		if got := run(t.Context(), append([]string{"mcp", "join"}, bad.args...), strings.NewReader(""), &out, &out); got != bad.want {
			t.Errorf("agora mcp join %q ended with %d, want %d: %s", bad.args, got, bad.want, out.String())
		}
	}
}

func TestEdgesOfTheEnvironmentAreNotTakenForAToolServer(t *testing.T) {
	t.Setenv("AGORA_URL", "ws://127.0.0.1:1")
	var out output
	if got := run(t.Context(), []string{"mcp", "join", "--", "true"}, strings.NewReader(""), &out, &out); got != exit.Error {
		t.Errorf("it ended with %d: %s", got, out.String())
	}
}

func TestTheNumberOfEdgesOfADevClusterIsNotTakenForTheirAddresses(t *testing.T) {
	url := startDev(t).public[0]
	c := &verbs{t: t, url: url}
	tools := mcp.NewServer(&mcp.Implementation{Name: "idle", Version: "1"}, nil)
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	t.Setenv("AGORA_EDGES", "3")
	t.Setenv("AGORA_URL", url)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"mcp", "join", "--url", server.URL}, strings.NewReader(""), t.Output(), t.Output())
	}()
	c.present("idle")
	stop()
	if status := await.Recv(t, "the end", done); status != 0 {
		t.Errorf("it ended with %d", status)
	}
	server.CloseClientConnections()
	server.Close()
}

func TestMCPJoinAdvisesWithItsOwnFlags(t *testing.T) {
	t.Parallel()
	c := &verbs{t: t, url: startDev(t).public[0]}
	tools := mcp.NewServer(&mcp.Implementation{Name: "twice", Version: "1"}, nil)
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	listen := c.start(t.Context(), nil, "listen", "twice", "--count", "1")
	c.present("twice")
	for edges, want := range map[string]string{c.url: "give this one another id (--as)", "::1": "--edges says where edges are"} {
		var out output
		if status := run(t.Context(), []string{"mcp", "join", "--url", server.URL, "--edges", edges}, strings.NewReader(""), &out, &out); status == 0 || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "twice") && edges == c.url {
			t.Errorf("with --edges %s it ended with %d and says %q, want %q in it", edges, status, out.String(), want)
		}
	}
	c.ok("", "send", "--from", "bob", "--to", "twice", "bye")
	listen.wait()
	server.CloseClientConnections()
	server.Close()
}
