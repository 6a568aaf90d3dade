package agenttools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
)

// says is an agent with a tool that answers what it is told to, and one that takes a list and returns it.
func says(t *testing.T, url string) {
	bob := dial(t, url, "bob", agora.Skill{Name: "say"}, agora.Skill{Name: "list", Schema: json.RawMessage(`{"type":"array"}`)})
	answers(t, bob, func(ctx context.Context, m *client.Message) {
		r := requestOf(m)
		var in struct{ Answer json.RawMessage }
		if r.Tool == "list" {
			in.Answer = r.Arguments
		} else if err := json.Unmarshal(r.Arguments, &in); err != nil {
			t.Errorf("the arguments are %s: %v", r.Arguments, err)
		}
		if err := m.Reply(ctx, in.Answer); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Reply = %v", err)
		}
	})
}

func TestAnswersBecomeResults(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	says(t, cluster.URL(0))
	me := dial(t, cluster.URL(0), "me")
	listable(t, me, "bob", 2)
	h := start(t, me, Config{}, generation2)
	long := strings.Repeat("é", maxText)
	for answer, want := range map[string]string{
		`"hi \"you\""`:   `hi "you"`,
		`[1.0,2]`:        `[1.0,2]`,
		`7`:              `7`,
		`"` + long + `"`: long[:maxText] + " | The answer is cut: it has 131072 bytes of text, and the first 65536 are shown. Call the tool again for less at a time.",
	} {
		if got := h.call("bob__say", json.RawMessage(`{"answer":`+answer+`}`)); got != want {
			t.Errorf("%.100s becomes …%s", answer, got[max(0, len(got)-200):])
		}
	}
	got := h.call("bob__say", json.RawMessage(`{"answer":{"sum":3}}`))
	if text, value, _ := strings.Cut(got, " | structured "); !strings.Contains(text, `"sum":3`) || !strings.Contains(value, `"sum":3`) {
		t.Errorf("an object becomes %s", got)
	}
	if got := h.call("bob__list", json.RawMessage(`{"arguments":[1.0]}`)); got != `[1.0]` {
		t.Errorf("a tool that takes a list got %s", got)
	}
	if got := h.call("bob__list", json.RawMessage(`[1.0]`)); !strings.Contains(got, `error | The tool "list" of the agent "bob" was not called: the arguments must be an object whose one member is "arguments"`) {
		t.Errorf("a call without the wrapper is answered with %s", got)
	}
}

// counts is an agent whose tool answers in pieces, each once the one before was heard. It says when it is done.
func counts(t *testing.T, url string, heard <-chan struct{}) (done <-chan struct{}) {
	bob, all := dial(t, url, "bob", agora.Skill{Name: "count"}), make(chan struct{}, 1)
	answers(t, bob, func(ctx context.Context, m *client.Message) {
		defer func() { all <- struct{}{} }()
		s, err := m.ReplyStream(ctx, nil)
		if err != nil {
			t.Errorf("ReplyStream = %v", err)
			return
		}
		for _, piece := range []string{"one, ", "two, ", "three"} {
			if _, err := s.WriteString(piece); err != nil {
				t.Errorf("WriteString = %v", err)
				return
			}
			<-heard
		}
		if err := s.CloseWith(json.RawMessage(`{"n":3}`)); err != nil {
			t.Errorf("CloseWith = %v", err)
		}
	})
	return all
}

func TestPiecesAreProgressAndStandInTheResult(t *testing.T) {
	t.Parallel()
	cluster, heard := startCluster(t), make(chan struct{}, 3)
	done := counts(t, cluster.URL(0), heard)
	me := dial(t, cluster.URL(0), "me")
	listable(t, me, "bob", 1)
	for _, generation := range []string{generation1, generation2} {
		h := start(t, me, Config{}, generation)
		p := &mcp.CallToolParams{Name: "bob__count", Meta: mcp.Meta{"progressToken": "p-1"}}
		result := make(chan *mcp.CallToolResult, 1)
		go func() {
			r, err := h.CallTool(await.Context(t), p)
			if err != nil {
				t.Errorf("CallTool = %v", err)
			}
			result <- r
		}()
		for _, want := range []string{"one, ", "two, ", "three"} {
			if got := await.Recv(t, "progress", h.said); got != want {
				t.Errorf("progress is %q, want %q", got, want)
			}
			heard <- struct{}{}
		}
		if got := shown(await.Recv(t, "the result", result)); got != "one, two, three\n{\"n\":3} | structured {\"n\":3}" {
			t.Errorf("the result is %s", got)
		}
		await.Recv(t, "the agent to be done", done)
	}
}

func TestProgressIsBoundedInSizeAndRate(t *testing.T) {
	t.Parallel()
	cluster, heard := startCluster(t), make(chan struct{}, 3)
	done := counts(t, cluster.URL(0), heard)
	me := dial(t, cluster.URL(0), "me")
	listable(t, me, "bob", 1)
	h := start(t, me, Config{}, generation1)
	h.catalog.progress = time.Hour
	for range 3 {
		heard <- struct{}{}
	}
	r, err := h.CallTool(await.Context(t), &mcp.CallToolParams{Name: "bob__count", Meta: mcp.Meta{"progressToken": 7}})
	if err != nil || r.IsError {
		t.Fatalf("CallTool = %+v, %v", r, err)
	}
	await.Recv(t, "the agent to be done", done)
	if got := await.Recv(t, "progress", h.said); got != "one, " {
		t.Errorf("progress is %q, want the first piece", got)
	}
	if len(h.said) > 0 {
		t.Errorf("within an hour there is more progress: %q", <-h.said)
	}
}

func TestErrorsAreResultsThatSayWhatToDo(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	silent := make(chan struct{}, 2)
	gaveUp := make(chan error, 2)
	bob := dial(t, cluster.URL(0), "bob", agora.Skill{Name: "strict", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}, agora.Skill{Name: "silent"})
	answers(t, bob, func(ctx context.Context, m *client.Message) {
		ctx, free := m.Context(ctx)
		defer free()
		silent <- struct{}{}
		<-ctx.Done()
		gaveUp <- context.Cause(ctx)
	})
	me := dial(t, cluster.URL(0), "me")
	listable(t, me, "bob", 2)
	h := prepare(t, me, Config{CallTimeout: time.Second})
	h.connect(generation1)
	if got := h.call("bob__strict", json.RawMessage(`{"n":"x"}`)); !strings.HasPrefix(got, `error | The tool "strict" of the agent "bob" was not called: at /n: got string, want integer`) ||
		!strings.HasSuffix(got, "Correct the arguments by the tool's schema and call it again.") {
		t.Errorf("wrong arguments are answered with %s", got)
	}
	if got := h.call("bob__silent", nil); got != `error | The tool "silent" of the agent "bob" has not answered in time (1s at most); it may have done its work or not. Check that before calling it again, or ask for less.` {
		t.Errorf("no answer becomes %s", got)
	}
	await.Recv(t, "the call", silent)
	await.Recv(t, "the end of the call at its agent", gaveUp)
	if err := bob.UpdateCard(await.Context(t), client.Card{Tools: []agora.Skill{{Name: "other"}}}); err != nil {
		t.Fatal(err)
	}
	listable(t, me, "bob", 1)
	if got := h.call("bob__silent", nil); got != `error | The agent "bob" has no tool "silent" any more. List the tools again, and call another one.` {
		t.Errorf("the call of a tool that is gone is answered with %s", got)
	}
}

func TestACancelOfTheHostReachesTheAgent(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	called, gaveUp := make(chan struct{}, 2), make(chan error, 2)
	bob := dial(t, cluster.URL(0), "bob", agora.Skill{Name: "silent"})
	answers(t, bob, func(ctx context.Context, m *client.Message) {
		ctx, free := m.Context(ctx)
		defer free()
		called <- struct{}{}
		<-ctx.Done()
		gaveUp <- context.Cause(ctx)
	})
	me := dial(t, cluster.URL(0), "me")
	listable(t, me, "bob", 1)
	for _, generation := range []string{generation1, generation2} {
		h := start(t, me, Config{}, generation)
		ctx, cancel := context.WithCancel(await.Context(t))
		ended := make(chan error, 1)
		go func() {
			_, err := h.CallTool(ctx, &mcp.CallToolParams{Name: "bob__silent"})
			ended <- err
		}()
		await.Recv(t, "the call", called)
		cancel()
		if err := await.Recv(t, "the end of the call", ended); !errors.Is(err, context.Canceled) {
			t.Errorf("CallTool = %v", err)
		}
		if err := await.Recv(t, "the cancel", gaveUp); !errors.Is(err, client.ErrCancelled) {
			t.Errorf("the agent was told %v", err)
		}
	}
}

func TestACallIsRefusedWhileTooManyAreUnderWay(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	me := dial(t, cluster.URL(0), "me")
	bob := dial(t, cluster.URL(0), "bob", agora.Skill{Name: "a"})
	listable(t, me, bob.Agent(), 1)
	h := start(t, me, Config{}, generation2)
	for range maxCalls {
		h.catalog.calls <- struct{}{}
	}
	if got := h.call("bob__a", nil); !strings.HasPrefix(got, `error | The tool "a" of the agent "bob" was not called, as too many calls are made: 64 are under way.`) {
		t.Errorf("the call is answered with %s", got)
	}
}
