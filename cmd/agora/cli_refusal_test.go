package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora/cmd/agora/exit"
)

// TestAnErrorThatAnAgentAnswersIsAnErrorByEveryWay holds that a sidecar's and a tool server's error is one to whoever
// asks, calls or hands off, on the command line and over HTTP: by exit status and by the status of HTTP.
func TestAnErrorThatAnAgentAnswersIsAnErrorByEveryWay(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	c := &verbs{t: t, url: d.public[0]}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/card" {
			io.WriteString(w, `{"name":"plain","skills":[{"name":"find","path":"/find"}]}`)
			return
		}
		http.Error(w, "there is no such thing", http.StatusNotFound)
	}))
	t.Cleanup(agent.Close)
	tools := mcp.NewServer(&mcp.Implementation{Name: "saws", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "find"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("the saw broke")
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	ctx, stop := context.WithCancel(t.Context())
	side := c.start(ctx, nil, "sidecar", "--agent-url", agent.URL, "--id", "plain", "--p2p-addr", "none")
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"mcp", "join", "--as", "saws", "--url", server.URL, "--edges", c.url}, strings.NewReader(""), t.Output(), t.Output())
	}()
	t.Cleanup(func() {
		stop()
		side.wait()
		<-ended
		server.CloseClientConnections()
		server.Close()
	})
	c.present("plain", "saws")
	for _, one := range []struct {
		agent        string
		says         string
		exit, status int
	}{
		{"plain", "the agent answered 404: there is no such thing", exit.NotFound, http.StatusNotFound},
		{"saws", "the saw broke", exit.Aborted, http.StatusBadGateway},
	} {
		call := `{"action":"call_tool","tool_name":"find","arguments":{}}`
		for _, args := range [][]string{
			{"ask", "--to", one.agent, "--payload", call},
			{"ask", "--to", one.agent, "--payload", call, "--json"},
			{"call", "--to", one.agent, "find"},
			{"call", "--to", one.agent, "find", "--json"},
			{"handoff", "--to", one.agent, "POST", "/tools/find", "{}"},
			{"handoff", "--to", one.agent, "POST", "/tools/find", "{}", "--json"},
		} {
			if r := c.run("", args...); r.status != one.exit || !strings.Contains(r.stderr, one.says) {
				t.Errorf("%v: %+v, want status %d, %q", args, r, one.exit, one.says)
			}
		}
		for path, body := range map[string]string{
			"/ask": call, "/tools/find": "{}", "/handoff": `{"method":"POST","path":"/tools/find","input_data":{}}`,
		} {
			r, err := http.Post(httpOf(d.public[0])+"/agents/"+one.agent+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			said, _ := io.ReadAll(r.Body)
			r.Body.Close()
			if r.StatusCode != one.status || !strings.Contains(string(said), `{"error":{"code":"`) || !strings.Contains(string(said), one.says) {
				t.Errorf("%s of %s: %d %s, want %d, %q", path, one.agent, r.StatusCode, said, one.status, one.says)
			}
		}
	}
}
