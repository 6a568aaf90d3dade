package iat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/party"
)

// live starts a cluster whose edges take envelopes.
func live(t *testing.T) *agoratest.Cluster {
	t.Helper()
	return agoratest.Start(t, agoratest.Options{
		Grace: time.Hour, Approvals: true, Node: edge.Config{Heartbeat: time.Minute},
		Doors: []func(agoratest.Entry) (agoratest.Opened, error){party.IAT().Open},
	})
}

// at is a configuration of an agent that begins at edge k, and may go to all others.
func at(c *agoratest.Cluster, k int, id string) Config {
	cfg := quick(c.HTTP(k))
	cfg.Agent = id
	return cfg
}

// spread has a client begin at edge k, and go to all others in turn.
func spread(c *agoratest.Cluster, client *Client, k int) {
	client.urls = nil
	for i := range c.Size() {
		client.urls = append(client.urls, c.HTTP((k+i)%c.Size()))
	}
}

// subAgent serves an agent that begins at edge k.
func subAgent(t *testing.T, c *agoratest.Cluster, k int, f func(context.Context, *Task) (any, error)) {
	t.Helper()
	cfg, there := at(c, k, "bob"), make(chan Status, 99)
	cfg.OnStatus = func(s Status) { there <- s }
	a, err := NewAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	spread(c, a.Client, k)
	a.OnExecute(f)
	serve(t, a.Serve, a.Close)
	await.Recv(t, "bob's presence", there)
}

// tidies says and asks all that a task can, and deletes a.bak, in a directory.
func tidies(root string) func(context.Context, *Task) (any, error) {
	return func(ctx context.Context, task *Task) (any, error) {
		for _, err := range []error{task.Think("hm"), task.Log("info", "begun"), task.Chunk("one "), task.Chunk("two")} {
			if err != nil {
				return nil, err
			}
		}
		raw, err := task.CallTool(ctx, "list", map[string]string{"dir": root})
		if err != nil {
			return nil, err
		}
		if _, err := task.CallTool(ctx, "other", nil); agora.AsError(err).Code != agora.Forbidden {
			return nil, fmt.Errorf("a tool that is not allowed: %w", err)
		}
		if _, err := task.CallTool(ctx, "list", map[string]int{"dir": 1}); agora.AsError(err).Code != agora.InvalidRequest {
			return nil, fmt.Errorf("arguments that do not fit: %w", err)
		}
		for _, what := range []any{"delete a.bak", map[string]string{"path": "b.bak"}} {
			approved, err := task.RequireApproval(ctx, what)
			if err != nil || approved != (what == "delete a.bak") {
				return nil, fmt.Errorf("%v: approved %v, %w", what, approved, err)
			}
		}
		w, err := task.Workspace()
		if err != nil {
			return nil, err
		}
		return Done{Summary: task.Query + " " + string(raw), Usage: map[string]int{"n": 2}}, w.Remove("a.bak")
	}
}

// listens is a host that lends tools, approves of one thing, and passes on what it hears.
func listens(t *testing.T, cfg Config, heard chan<- string) *Host {
	t.Helper()
	h, err := NewHost(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	h.OnTool("list", "lists", `{"type":"object","properties":{"dir":{"type":"string"}},"required":["dir"]}`, func(_ context.Context, call Call) (any, error) {
		return json.RawMessage(`[ "a.bak" ]`), nil
	})
	h.OnTool("other", "does more", "", func(context.Context, Call) (any, error) { return nil, errors.New("called") })
	h.OnThink(func(_ context.Context, v Thought) { heard <- v.From + " thinks " + v.Text })
	h.OnLog(func(_ context.Context, l LogLine) { heard <- l.Level + " " + l.Message })
	h.OnApproval(func(_ context.Context, a Approval) (bool, string, error) {
		return a.What() == "delete a.bak", "as said", nil
	})
	return h
}

// outcome reads a run to its end, and returns the text of its chunks.
func outcome(t *testing.T, run *Run) (text string, r *Result) {
	t.Helper()
	defer run.Close()
	for chunk := range run.Chunks() {
		text += chunk.Text
	}
	r, err := run.Result()
	if err != nil {
		t.Fatal(err)
	}
	return text, r
}

func TestATaskFromBeginningToEnd(t *testing.T) {
	t.Parallel()
	c, root := live(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.bak"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	subAgent(t, c, 1, tidies(root))
	cfg, heard := at(c, 0, "alice"), make(chan string, 9)
	cfg.Root = root
	h := listens(t, cfg, heard)
	err := h.ServeWhile(await.Context(t), func(ctx context.Context) error {
		run, err := h.Execute(ctx, "bob", Execute{Query: "tidy", AllowedTools: []string{"list"}})
		if err != nil {
			return err
		}
		if text, result := outcome(t, run); text != "one two" || result.Summary != `tidy [ "a.bak" ]` || string(result.Usage) != `{"n":2}` {
			t.Errorf("chunks %q, result %+v", text, result)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bob thinks hm", "info begun"} {
		if got := await.Recv(t, want, heard); got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "a.bak")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a.bak is still there: %v", err)
	}
}

// hosts starts a task as alice, at edge 0 and later at others.
func hosts(t *testing.T, c *agoratest.Cluster, query string) *Run {
	t.Helper()
	h := client(t, at(c, 0, "alice"))
	spread(c, h, 0)
	run, err := h.Execute(await.Context(t), "bob", Execute{Query: query})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestARunOutlivesTheEdgesOfBothSides(t *testing.T) {
	t.Parallel()
	c := live(t)
	const n = 60
	want := ""
	for i := range n {
		want += fmt.Sprintln(i)
	}
	var tasks atomic.Int32
	cut := make(chan int, 2)
	subAgent(t, c, 1, func(ctx context.Context, task *Task) (any, error) {
		tasks.Add(1)
		for i := range n {
			if err := task.Chunk(fmt.Sprintln(i)); err != nil {
				return nil, err
			}
			switch i {
			case n / 3:
				cut <- 0
			case n / 2:
				cut <- 1
			}
			if err := task.out.flush(); err != nil {
				return nil, err
			}
		}
		return "done", nil
	})
	run, killer := hosts(t, c, "count"), sync.WaitGroup{}
	killer.Go(func() {
		for range 2 {
			select {
			case k := <-cut:
				c.LapseEdge(k)
			case <-t.Context().Done():
				return
			}
		}
	})
	text, result := outcome(t, run)
	killer.Wait()
	if result.Summary != "done" || text != want || tasks.Load() != 1 {
		t.Errorf("chunks %q of %d tasks, %+v; want 0 to %d once", text, tasks.Load(), result, n-1)
	}
}

func TestEdgesThatDrainCostNothing(t *testing.T) {
	t.Parallel()
	c := live(t)
	goOn := make(chan struct{})
	subAgent(t, c, 1, func(ctx context.Context, task *Task) (any, error) {
		if err := task.Chunk("before "); err != nil {
			return nil, err
		}
		<-goOn
		return "done", task.Chunk("after")
	})
	run := hosts(t, c, "wait")
	defer run.Close()
	text, once := "", false
	for chunk, err := range run.Chunks() {
		if err != nil {
			t.Fatal(err)
		}
		if text += chunk.Text; !once {
			once = true
			c.StopEdge(1)
			c.StopEdge(0)
			close(goOn)
		}
	}
	if result, err := run.Result(); err != nil || result.Summary != "done" || text != "before after" {
		t.Errorf("chunks %q, %+v, %v", text, result, err)
	}
}

// decideOnce approves of what bob asks, and sees that it can't be decided again.
func decideOnce(t *testing.T, operator *Client, id string) {
	t.Helper()
	if got, err := operator.Decide(await.Context(t), id, Decision{Approved: true, Note: "go on", Agent: "bob"}); err != nil || got.State != Approved || got.Note != "go on" {
		t.Errorf("Decide = %+v, %v", got, err)
	}
	_, err := operator.Decide(await.Context(t), id, Decision{})
	if e, ok := errors.AsType[*Error](err); !ok || e.HTTP != http.StatusConflict {
		t.Errorf("deciding twice: %v, want 409", err)
	}
	if got, err := operator.Approval(await.Context(t), id, ""); err != nil || got.State != Approved {
		t.Errorf("Approval = %+v, %v", got, err)
	}
}

func TestAnOperatorDecidesAndSeesWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	c := live(t)
	subAgent(t, c, 1, func(ctx context.Context, task *Task) (any, error) {
		approved, err := task.RequireApproval(ctx, "delete all")
		return fmt.Sprint(approved), err
	})
	operator := client(t, Config{URLs: []string{c.HTTP(2)}})
	run := hosts(t, c, "tidy")
	defer run.Close()
	var states []ApprovalState
	for a, err := range operator.WatchApprovals(await.Context(t), ApprovalQuery{Agent: "bob"}) {
		if err != nil {
			t.Fatal(err)
		}
		if states = append(states, a.State); a.State != Pending {
			break
		}
		if a.What() != "delete all" || a.To != "agora" {
			t.Errorf("approval %+v, want what bob asks anybody, as alice hears nothing", a)
		}
		decideOnce(t, operator, a.ID)
	}
	if want := []ApprovalState{Pending, Approved}; !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	if result, err := run.Result(); err != nil || result.Summary != "true" {
		t.Errorf("Result = %+v, %v, want true", result, err)
	}
	if all, err := operator.Approvals(await.Context(t), ApprovalQuery{State: Pending}); err != nil || len(all) != 0 {
		t.Errorf("Approvals = %+v, %v, want none that are pending", all, err)
	}
	if _, err := operator.Approval(await.Context(t), "none", "bob"); agora.AsError(err).Code != agora.NotFound {
		t.Errorf("Approval = %v, want NOT_FOUND", err)
	}
}

func TestAProgramThatStartsAnewIsNotGivenWhatIsDone(t *testing.T) {
	t.Parallel()
	c := live(t)
	host := client(t, at(c, 0, "alice"))
	for round := range 3 {
		cfg, there := at(c, 1, "bob"), make(chan Status, 99)
		cfg.OnStatus = func(s Status) { there <- s }
		a, err := NewAgent(cfg)
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 9)
		a.OnExecute(func(_ context.Context, task *Task) (any, error) {
			got <- task.Query
			return "ok", nil
		})
		servedUntil(t, a, func() {
			await.Recv(t, "bob's presence", there)
			run, err := host.Execute(await.Context(t), "bob", Execute{Query: fmt.Sprint(round)})
			if err != nil {
				t.Fatal(err)
			}
			outcome(t, run)
		})
		a.Close()
		await.True(t, "the end of bob's connections", func() bool { return c.Node(1).Stats().Sessions == 0 })
		if q := <-got; q != fmt.Sprint(round) || len(got) != 0 {
			t.Errorf("round %d: it was given %q and %d more", round, q, len(got))
		}
	}
}

func TestACancelledRunEndsItsTask(t *testing.T) {
	t.Parallel()
	c := live(t)
	cause := make(chan error, 1)
	subAgent(t, c, 1, func(ctx context.Context, task *Task) (any, error) {
		if err := task.Chunk("begun"); err != nil {
			return nil, err
		}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	run, err := client(t, at(c, 0, "alice")).Execute(await.Context(t), "bob", Execute{Query: "wait"})
	if err != nil {
		t.Fatal(err)
	}
	for range run.Chunks() {
		break
	}
	run.Close()
	if err := await.Recv(t, "the end of the task", cause); !errors.Is(err, ErrCancelled) {
		t.Errorf("the task ended with %v, want %v", err, ErrCancelled)
	}
}

func TestToolsOfAllAreFoundAndCalled(t *testing.T) {
	t.Parallel()
	c := live(t)
	a, err := NewAgent(at(c, 1, "bob"))
	if err != nil {
		t.Fatal(err)
	}
	a.OnTool("word_count", "counts words", `{"type":"object","properties":{"text":{"type":"string"}}}`, func(_ context.Context, call Call) (any, error) {
		var p struct{ Text string }
		if err := json.Unmarshal(call.Arguments, &p); err != nil {
			return nil, err
		}
		return map[string]int{"words": len(strings.Fields(p.Text))}, nil
	})
	serve(t, a.Serve, a.Close)
	asker := client(t, at(c, 0, "alice"))
	await.True(t, "the tool", func() bool {
		tools, _, err := asker.Tools(await.Context(t), ToolQuery{Name: "word_count"})
		return err == nil && len(tools) == 1 && tools[0].Agent == "bob" && string(tools[0].Input) == `{"type":"object","properties":{"text":{"type":"string"}}}`
	})
	if got, err := asker.CallTool(await.Context(t), "bob", "word_count", map[string]string{"text": "a b c"}); err != nil || string(got) != `{"words":3}` {
		t.Errorf("CallTool = %s, %v, want 3 words", got, err)
	}
	_, err = asker.CallTool(await.Context(t), "bob", "word_count", map[string]int{"text": 1})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != agora.InvalidRequest || e.Path != "/payload/arguments/text" {
		t.Errorf("CallTool = %v, want INVALID_REQUEST with the place", err)
	}
}
