package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/party"
)

// newIATCLI is a CLI whose edges take envelopes.
func newIATCLI(t *testing.T) *verbs {
	t.Helper()
	c := &verbs{t: t, cluster: agoratest.Start(t, agoratest.Options{
		Edges: 2, Grace: time.Hour, Approvals: true, Node: edge.Config{Heartbeat: time.Minute},
		Doors: []func(agoratest.Entry) (agoratest.Opened, error){party.IAT().Open},
	})}
	c.url = c.cluster.URL(0) + "," + c.cluster.URL(1)
	return c
}

// bob serves a sub-agent until the test ends.
func (c *verbs) bob(prepare func(*iat.Agent)) {
	c.t.Helper()
	there := make(chan iat.Status, 9)
	a, err := iat.NewAgent(iat.Config{URLs: []string{c.cluster.HTTP(1)}, Agent: "bob", OnStatus: func(s iat.Status) { there <- s }})
	if err != nil {
		c.t.Fatal(err)
	}
	prepare(a)
	ctx, cancel := context.WithCancel(c.t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := a.Serve(ctx); err != nil {
			c.t.Errorf("Serve = %v", err)
		}
	})
	c.t.Cleanup(func() {
		cancel()
		serving.Wait()
		a.Close()
	})
	await.Recv(c.t, "bob's presence", there)
}

// cautious is a task that says something, asks for approval, and tells what it got.
func cautious(ctx context.Context, t *iat.Task) (any, error) {
	for _, err := range []error{t.Think("hm\x1b[2J"), t.Log("info", "begun"), t.Chunk("one "), t.Chunk("two")} {
		if err != nil {
			return nil, err
		}
	}
	approved, err := t.RequireApproval(ctx, "delete "+t.Query)
	return fmt.Sprint("approved: ", approved), err
}

// approval returns the id of the only approval that waits for a decision.
func (c *verbs) approval() string {
	c.t.Helper()
	out := ""
	await.True(c.t, "an approval", func() bool {
		out = c.ok("", "approvals", "--json").stdout
		return out != ""
	})
	_, rest, _ := strings.Cut(out, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

func TestExecuteTellsOfATaskAndApproveDecides(t *testing.T) {
	t.Parallel()
	c := newIATCLI(t)
	c.bob(func(a *iat.Agent) { a.OnExecute(cautious) })
	run := c.start(t.Context(), strings.NewReader("a.md"), "execute", "--from", "alice", "--to", "bob", "-")
	id := c.approval()
	run.tells("* bob thinks: hm\\x1b[2J\n", "* bob info: begun\n", "* bob asks for approval: delete a.md; agora approve "+id+"\n")
	if got := c.ok("", "approvals"); !strings.Contains(got.stdout, "AGE") || !strings.Contains(got.stdout, "bob    delete a.md  "+id+"\n") {
		t.Errorf("approvals: %+v", got)
	}
	if got := c.complete("approve", ""); !strings.Contains(got, id) {
		t.Errorf("a shell is offered %q, want %s", got, id)
	}
	if r := c.run("", "approve", id, "--note", "go on"); r != (cliResult{}) {
		t.Errorf("approve: %+v", r)
	}
	if r := run.wait(); r.status != 0 || r.stdout != "one two\napproved: true\n" {
		t.Errorf("execute: %+v", r)
	}
	if r := c.run("", "deny", id); r.status != exit.Error || !strings.Contains(r.stderr, "approved already") {
		t.Errorf("deny: %+v, want that it is decided", r)
	}
	if r := c.run("", "approve", "none"); r.status != exit.NotFound {
		t.Errorf("approve: %+v, want status %d", r, exit.NotFound)
	}
	if r := c.ok("", "approvals", "--all"); !strings.Contains(r.stdout, "approved  operator  bob") {
		t.Errorf("approvals: %+v", r)
	}
	if r := c.ok("", "approvals"); strings.Contains(r.stdout, id) {
		t.Errorf("approvals: %+v, want none", r)
	}
}

func TestExecuteInJSONIsALineForEachThing(t *testing.T) {
	t.Parallel()
	c := newIATCLI(t)
	c.bob(func(a *iat.Agent) { a.OnExecute(cautious) })
	watch := c.start(t.Context(), nil, "approvals", "--watch", "--json")
	run := c.start(t.Context(), nil, "execute", "--from", "alice", "--to", "bob", "--json", "--allow", "", "x")
	if r := c.run("", "deny", c.approval(), "--agent", "bob", "--json", "--as", "carol"); r.status != 0 || !strings.Contains(r.stdout, `"state":"denied"`) || !strings.Contains(r.stdout, `"by":"carol"`) {
		t.Errorf("deny: %+v", r)
	}
	r := run.wait()
	for _, want := range []string{
		`{"type":"think","id":`, `"from":"bob","payload":{"action":"think","thought_text":"hm\u001b[2J"}}`, `{"type":"log","id":`, `{"type":"chunk","id":`,
		`{"type":"approval","id":`, `{"type":"result","id":`, `"payload":{"action":"done","result_summary":"approved: false"}}`,
	} {
		if !strings.Contains(r.stdout, want) || r.status != 0 || r.stderr != "" {
			t.Errorf("execute: %+v, want %s", r, want)
		}
	}
	await.True(t, "what the watch tells", func() bool {
		out := watch.out.String()
		return strings.Count(out, "\n") == 2 && strings.Contains(out, `"state":"pending"`) && strings.Contains(out, `"state":"denied"`)
	})
}

func TestAnInterruptedTaskIsCancelled(t *testing.T) {
	t.Parallel()
	c := newIATCLI(t)
	cause := make(chan error, 1)
	c.bob(func(a *iat.Agent) {
		a.OnExecute(func(ctx context.Context, t *iat.Task) (any, error) {
			err := t.Chunk("begun")
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil, err
		})
	})
	ctx, interrupt := context.WithCancel(t.Context())
	run := c.start(ctx, nil, "execute", "--from", "alice", "--to", "bob", "wait")
	await.True(t, "the first chunk", func() bool { return run.out.String() == "begun" })
	interrupt()
	if r := run.wait(); r.status != exit.Aborted {
		t.Errorf("execute: %+v, want status %d", r, exit.Aborted)
	}
	if err := await.Recv(t, "the end of the task", cause); !errors.Is(err, iat.ErrCancelled) {
		t.Errorf("the task ended with %v, want %v", err, iat.ErrCancelled)
	}
}

func TestExecuteLeavesTheMailOfItsAgent(t *testing.T) {
	t.Parallel()
	c := newIATCLI(t)
	c.bob(func(a *iat.Agent) {
		a.OnExecute(func(ctx context.Context, t *iat.Task) (any, error) {
			_, err := t.CallTool(ctx, "list", nil)
			return nil, err
		})
	})
	c.ok("", "publish", "lobby", "--as", "alice", "here I am") // who has never been has no mailbox
	c.ok("", "send", "--from", "carol", "--to", "alice", "a letter")
	for range 2 {
		if r := c.run("", "execute", "--from", "alice", "--to", "bob", "x"); r.status != exit.NotFound || !strings.Contains(r.stderr, "this host has no tools") {
			t.Errorf("execute: %+v, want that there are no tools", r)
		}
	}
	if r := c.ok("", "listen", "alice", "--count", "1"); !strings.Contains(r.stdout, ": a letter") { // the task's downlink may have had it
		t.Errorf("listen: %+v, want the letter", r)
	}
}

func TestToolsAreListedAndCalled(t *testing.T) {
	t.Parallel()
	c := newIATCLI(t)
	c.bob(func(a *iat.Agent) {
		a.OnTool("echo", "says it\nagain \x1b[31m", `{"type":"object","properties":{"text":{"type":"string"}}}`, func(_ context.Context, call iat.Call) (any, error) {
			return call.Arguments, nil
		})
	})
	if r := c.ok("", "tools"); r.stdout != "AGENT  TOOL  DESCRIPTION\nbob    echo  says it again \\x1b[31m\n" {
		t.Errorf("tools: %+v", r)
	}
	if r := c.ok("", "tools", "--agent", "bob", "--name", "echo", "--q", "again", "--json"); !strings.Contains(r.stdout, `"input_schema":{"type":"object"`) {
		t.Errorf("tools: %+v", r)
	}
	if r := c.ok("", "tools", "--name", "none"); r.stdout != "AGENT  TOOL  DESCRIPTION\n" {
		t.Errorf("tools: %+v, want none", r)
	}
	file := filepath.Join(t.TempDir(), "arguments.json")
	if err := os.WriteFile(file, []byte(`{"text": "hi"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{`{"text": "hi"}`}, {"--file", file}, {"-"}} {
		if r := c.run(`{"text": "hi"}`, append([]string{"call", "--from", "alice", "--to", "bob", "echo"}, args...)...); r != (cliResult{stdout: "hi\n"}) {
			t.Errorf("call %v: %+v, want hi", args, r)
		}
	}
	if r := c.ok("", "call", "--to", "bob", "echo", "--json"); r.stdout != `{"type":"result","from":"bob","code":200,"body":{}}`+"\n" && r.stdout != `{"type":"result","from":"bob","body":{}}`+"\n" {
		t.Errorf("call: %+v, want {}", r)
	}
	for _, bad := range []struct {
		status int
		args   []string
	}{
		{exit.NotFound, []string{"--to", "bob", "none"}}, {exit.NotFound, []string{"--to", "nobody", "echo"}}, {exit.Usage, []string{"--to", "bob", "echo", "[]"}},
		{exit.Usage, []string{"echo"}}, {exit.Error, []string{"--to", "bob", "echo", `{"text":1}`}},
	} {
		if r := c.run("", append([]string{"call"}, bad.args...)...); r.status != bad.status || r.stdout != "" {
			t.Errorf("call %v: %+v, want status %d", bad.args, r, bad.status)
		}
	}
}

func TestVerbsOfTasksSayWhereNoEdgeIs(t *testing.T) {
	t.Parallel()
	c := &verbs{t: t, url: "http://127.0.0.1:1"}
	for _, args := range [][]string{{"tools"}, {"approvals"}, {"approve", "x"}, {"call", "--to", "bob", "echo"}, {"approvals", "--watch"}} {
		if r := c.run("", args...); r.status != exit.Unavailable || !strings.Contains(r.stderr, "AGORA_URL says where edges are") {
			t.Errorf("%v: %+v, want status %d", args, r, exit.Unavailable)
		}
	}
	for _, args := range [][]string{{"approvals", "--state", "open"}, {"approvals", "--all", "--state", "denied"}, {"execute", "x"}, {"approve"}} {
		if r := c.run("", args...); r.status != exit.Usage {
			t.Errorf("%v: %+v, want status %d", args, r, exit.Usage)
		}
	}
}
