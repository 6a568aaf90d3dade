package iat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// taken reads n envelopes of a client's events, and returns their ids.
func taken(t *testing.T, c *Client, n int) (ids []string) {
	t.Helper()
	for e, err := range c.Events(await.Context(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if ids = append(ids, e.Header.MsgID); len(ids) == n {
			return ids
		}
	}
	return ids
}

func notice(id string) string { return envelopeOf(Notification, "bob", id, "", `{"action":"x"}`) }

func TestADownlinkGoesOnBehindWhatIsDoneAndGivesNothingTwice(t *testing.T) {
	t.Parallel()
	s := newScript(t, none, func(n int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		w.Header().Set("Agora-Last-Seq", "4")
		begin(w)
		switch n {
		case 0:
			tell(w, "5", "", notice("a"))
			tell(w, "9", "", notice("b"))
			tell(w, "", "", "")
		case 1: // it is moved
			tell(w, "12", "", notice("c"))
			tell(w, "", "reconnect", `{"after_ms":1}`)
		case 2:
			tell(w, "", "", faultText("UNAVAILABLE"))
		case 3:
			tell(w, "13", "", notice("d"))
			lasts(r)
		}
	})
	if got := strings.Join(taken(t, client(t, quick(s.URL)), 4), " "); got != "a b c d" {
		t.Errorf("it was given %s, want a b c d", got)
	}
	for k, want := range []string{"", "9", "12", "12", "13"} { // the last one confirms what came last
		r := s.asked()[k]
		if got := r.Header.Get("Last-Event-ID"); got != want || r.URL.Query().Get("agent") != "me" {
			t.Errorf("downlink %d was asked for after %q by %q, want after %q", k, got, r.URL, want)
		}
	}
}

func TestAnAgentTakesItsOwnDownlinkOver(t *testing.T) {
	t.Parallel()
	s := newScript(t, none, func(n int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		switch n {
		case 1, 2, 3: // the old connection counts as alive for a while
			refuse(w, http.StatusConflict, "AGENT_EXISTS")
			return
		case 4: // the answer with another token was lost
			refuse(w, http.StatusBadRequest, "INVALID_REQUEST")
			return
		}
		w.Header().Set("Agora-Resume-Token", fmt.Sprint("token-", n))
		begin(w)
		tell(w, fmt.Sprint(n+1), "", notice(fmt.Sprint(n)))
		if n > 0 {
			lasts(r)
		}
	})
	taken(t, client(t, quick(s.URL)), 2)
	for k, want := range []string{"", "token-0", "token-0", "token-0", "token-0", ""} {
		if got := s.asked()[k].URL.Query().Get("resume_token"); got != want {
			t.Errorf("downlink %d was asked for with the token %q, want %q", k, got, want)
		}
	}
}

func TestAnIDThatIsHeldElsewhereIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := newScript(t, none, func(_ int, w http.ResponseWriter, _ *http.Request, _ *Envelope) {
		refuse(w, http.StatusConflict, "AGENT_EXISTS")
	})
	h, err := NewHost(quick(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	err = h.ServeWhile(await.Context(t), func(context.Context) error { return errors.New("called") })
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != agora.AgentExists || len(s.asked()) != 1 {
		t.Errorf("ServeWhile = %v after %d attempts, want AGENT_EXISTS after one", err, len(s.asked()))
	}
}

func TestASilentEdgeIsLeft(t *testing.T) {
	t.Parallel()
	silent := newScript(t, none, func(_ int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		begin(w)
		lasts(r)
	})
	alive := newScript(t, none, func(_ int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		begin(w)
		tell(w, "1", "", notice("a"))
		lasts(r)
	})
	cfg := quick(silent.URL, alive.URL)
	cfg.KeepAlive = time.Millisecond
	c := client(t, cfg)
	c.urls = []string{silent.URL, alive.URL}
	taken(t, c, 1)
	if n := len(silent.asked()); n == 0 {
		t.Error("the silent edge was not asked")
	}
}

// agentOf serves an agent until the test ends.
func agentOf(t *testing.T, cfg Config, f func(context.Context, *Task) (any, error)) *Agent {
	t.Helper()
	a, err := NewAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a.OnExecute(f)
	serve(t, a.Serve, a.Close)
	return a
}

// serve runs a Serve beside the test.
func serve(t *testing.T, f func(context.Context) error, end func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := f(ctx); err != nil && !errors.Is(err, ErrClosed) {
			t.Errorf("Serve = %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		end()
		serving.Wait()
	})
}

// registers answers a registration, and takes all else.
func registers(n int, w http.ResponseWriter, r *http.Request, e *Envelope) {
	if e.action() != "register" {
		stored(n, w, r, e)
		return
	}
	w.Write([]byte(envelopeOf(Response, "agora", "r", e.Header.MsgID, `{"status":"registered","expires_at":1700003600}`)))
}

func TestACancelEndsTheContextOfATask(t *testing.T) {
	t.Parallel()
	running := make(chan struct{})
	s := newScript(t, registers, func(n int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		begin(w)
		if n == 0 {
			tell(w, "1", "", envelopeOf(Request, "host", "x", "", `{"action":"execute","query":"wait"}`))
			<-running
			tell(w, "2", "", envelopeOf(Notification, "mallory", "c1", "x", `{"action":"cancel"}`)) // who has not asked
			tell(w, "3", "", envelopeOf(Notification, "host", "c2", "x", `{"action":"cancel"}`))
		}
		lasts(r)
	})
	cause := make(chan error, 1)
	agentOf(t, quick(s.URL), func(ctx context.Context, task *Task) (any, error) {
		close(running)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return "too late", nil
	})
	if err := await.Recv(t, "the end of the task", cause); !errors.Is(err, ErrCancelled) {
		t.Errorf("the context ended with %v, want %v", err, ErrCancelled)
	}
	for _, body := range s.said() {
		if strings.Contains(body, "too late") {
			t.Errorf("a task that nobody waits for is answered: %s", body)
		}
	}
}

// servedUntil serves an agent until f has returned.
func servedUntil(t *testing.T, a *Agent, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx) }() // which Close waits for
	f()
	cancel()
	if err := await.Recv(t, "the end", ended); err != nil {
		t.Errorf("Serve = %v", err)
	}
}

func TestATaskIsNotConfirmedBeforeItIsDone(t *testing.T) {
	t.Parallel()
	again, finish := make(chan struct{}), make(chan struct{})
	s := newScript(t, registers, func(n int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		w.Header().Set("Agora-Last-Seq", "2")
		begin(w)
		if n < 2 {
			tell(w, "3", "", envelopeOf(Request, "host", "x", "", `{"action":"execute","query":"wait"}`))
			tell(w, "4", "", notice("a"))
			return
		}
		if n == 2 {
			close(again)
		}
		lasts(r)
	})
	began := make(chan string, 9)
	a, err := NewAgent(quick(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.OnExecute(func(_ context.Context, task *Task) (any, error) {
		began <- task.Query
		<-finish
		return Done{Summary: "ok", Usage: map[string]int{"tokens": 7}}, nil
	})
	servedUntil(t, a, func() {
		await.Recv(t, "the task", began)
		await.Recv(t, "the third downlink", again)
		close(finish)
		await.True(t, "the answer", func() bool {
			return strings.Contains(strings.Join(s.said(), ""), `"result_summary":"ok","usage_stats":{"tokens":7}`)
		})
	})
	for k, want := range []string{"", "2", "2", "4"} {
		if got := s.asked()[k].Header.Get("Last-Event-ID"); got != want {
			t.Errorf("downlink %d was asked for after %q, want %q", k, got, want)
		}
	}
	if len(began) != 0 {
		t.Error("the task was done twice")
	}
}

func TestAnAgentRegistersAgainInTime(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(_ int, w http.ResponseWriter, _ *http.Request, e *Envelope) {
		w.Write([]byte(envelopeOf(Response, "agora", "r", e.Header.MsgID, `{"expires_at":1700000001}`))) // a second after it was written
	}, func(_ int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		begin(w)
		lasts(r)
	})
	cfg := quick(s.URL)
	cfg.Root, cfg.Description = "/srv", "tidies"
	a, err := NewAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a.OnTool("list", "lists", `{"type": "object"}`, nil)
	serve(t, a.Serve, a.Close)
	await.True(t, "three registrations", func() bool { return len(s.said()) >= 3 })
	want := `{"action":"register","agent":{"id":"me","description":"tidies"},"tools":[{"name":"list","description":"lists","input_schema":{"type":"object"}}],"workspace_root":"/srv"}`
	if got := s.said()[2]; !strings.Contains(got, want) {
		t.Errorf("it registers with %s, want %s", got, want)
	}
}

func TestRequestsThatNobodyTakesAreAnswered(t *testing.T) {
	t.Parallel()
	s := newScript(t, registers, func(_ int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		begin(w)
		tell(w, "1", "", envelopeOf(Request, "bob", "q1", "", `{"action":"dance"}`))
		tell(w, "2", "", envelopeOf(Request, "bob", "q2", "", `{"action":"call_tool","tool_name":"none"}`))
		tell(w, "3", "", envelopeOf(Request, "bob", "q3", "", `{"action":"call_tool","tool_name":"fails"}`))
		lasts(r)
	})
	h, err := NewHost(quick(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	h.OnTool("fails", "", "", func(context.Context, Call) (any, error) { return nil, errors.New("out of paper") })
	serve(t, h.Serve, h.Close)
	for id, want := range map[string]string{
		"q1": `"code":"INVALID_REQUEST"`, "q2": `"code":"NOT_FOUND"`, "q3": `"payload":{"error":{"code":"FAILED","message":"out of paper"}}`,
	} {
		await.True(t, "the answer to "+id, func() bool {
			for _, body := range s.said() {
				if strings.Contains(body, `"parent_id":"`+id+`","type":"response"`) {
					return strings.Contains(body, want)
				}
			}
			return false
		})
	}
}
