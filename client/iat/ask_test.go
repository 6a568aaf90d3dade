package iat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

func TestWhatIsSentKeepsItsPayloadByteForByte(t *testing.T) {
	t.Parallel()
	s := newScript(t, stored, none)
	const payload = `{ "n":1.0E+2, "<&>" : "\ud83d", "n2":[1,  2] }`
	e := &Envelope{Header: Header{Type: Notification, To: "bob"}, Payload: json.RawMessage(payload)}
	if err := client(t, quick(s.URL)).Send(await.Context(t), e); err != nil {
		t.Fatal(err)
	}
	if got := s.said()[0]; !strings.HasSuffix(got, `,"payload":`+payload+`}`) {
		t.Errorf("the edge got %s, want it to end with the payload %s", got, payload)
	}
	if e.Header.MsgID == "" || e.Header.From != "me" || e.Header.Timestamp == 0 {
		t.Errorf("header = %+v, want it to be filled in", e.Header)
	}
}

func TestWhatAnEdgeRefusesForTheMomentIsSentAgainUnderItsID(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(n int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		switch n {
		case 0:
			refuse(w, http.StatusServiceUnavailable, "UNAVAILABLE")
		case 1:
			refuse(w, http.StatusTooManyRequests, "RATE_LIMITED")
		case 2:
			panic(http.ErrAbortHandler) // the connection breaks
		case 3:
			http.Error(w, "bad gateway", http.StatusBadGateway) // what is before an edge
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}, none)
	dead := httptest.NewServer(nil)
	dead.Close()
	e := &Envelope{Header: Header{Type: Notification, To: "bob"}, Payload: json.RawMessage(`{}`)}
	if err := client(t, quick(s.URL, dead.URL)).Send(await.Context(t), e); err != nil {
		t.Fatal(err)
	}
	said := s.said()
	if len(said) != 5 {
		t.Fatalf("the edge got %d envelopes, want 5", len(said))
	}
	for _, body := range said {
		if body != said[0] {
			t.Errorf("sent again: %s, want %s", body, said[0])
		}
	}
}

func TestARefusalIsReturnedAtOnceWithItsPlace(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(_ int, w http.ResponseWriter, _ *http.Request, _ *Envelope) {
		refuse(w, http.StatusNotFound, "AGENT_NOT_FOUND")
	}, none)
	_, err := client(t, quick(s.URL)).Execute(await.Context(t), "nobody", Execute{Query: "x"})
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != agora.AgentNotFound || e.HTTP != http.StatusNotFound || e.Path != "/header/to" || e.From != "agora" {
		t.Errorf("Execute = %#v, want AGENT_NOT_FOUND of the edge", err)
	}
	if a, ok := errors.AsType[*agora.Error](err); !ok || a.Code != agora.AgentNotFound {
		t.Errorf("Execute = %v, want an agora.Error in it", err)
	}
	if n := len(s.said()); n != 1 {
		t.Errorf("the edge was asked %d times, want once", n)
	}
}

func TestARunGoesOnBehindWhatItHasHandedOut(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(n int, w http.ResponseWriter, r *http.Request, e *Envelope) {
		begin(w)
		for i := range min(2*n+2, 5) { // the answer comes again from its first chunk, and gets further each time
			tell(w, "", "", envelopeOf(ChunkType, "bob", fmt.Sprint("c", i), e.Header.MsgID, fmt.Sprintf(`{"text":"%d"}`, i)))
		}
		switch n {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			tell(w, "", "", faultText("UNAVAILABLE")) // the edge drains
		default:
			tell(w, "", "", envelopeOf(Response, "bob", "r", e.Header.MsgID, `{"action":"done","result_summary":"all","usage_stats":{"n":5}}`))
		}
	}, none)
	run, err := client(t, quick(s.URL)).Execute(await.Context(t), "bob", Execute{Query: "count", Context: []json.RawMessage{Text("a<b")}, AllowedTools: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	text := ""
	for chunk, err := range run.Chunks() {
		if err != nil {
			t.Fatal(err)
		}
		text += chunk.Text
	}
	result, err := run.Result()
	if err != nil || text != "01234" || result.Summary != "all" || string(result.Usage) != `{"n":5}` {
		t.Errorf("chunks %q, result %+v, %v, want 01234 and all", text, result, err)
	}
	said := s.said()
	if len(said) != 3 || said[0] != said[1] || said[1] != said[2] {
		t.Errorf("the edge got %q, want the same three times", said)
	}
	if want := `"payload":{"action":"execute","query":"count","context_fragments":["a<b"],"allowed_tools":[]}}`; !strings.HasSuffix(said[0], want) {
		t.Errorf("the edge got %s, want it to end with %s", said[0], want)
	}
}

func TestTheErrorOfAnAgentIsThatOfTheRun(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(_ int, w http.ResponseWriter, _ *http.Request, e *Envelope) {
		begin(w)
		tell(w, "", "", envelopeOf(Response, "bob", "r", e.Header.MsgID, `{"error":{"code":"UNAVAILABLE","message":"out of paper"}}`))
	}, none)
	run, err := client(t, quick(s.URL)).Execute(await.Context(t), "bob", Execute{Query: "print"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	result, err := run.Result()
	if e, ok := errors.AsType[*Error](err); !ok || e.From != "bob" || e.Message != "out of paper" || result != nil {
		t.Errorf("Result = %+v, %v, want bob's error", result, err)
	}
	if n := len(s.said()); n != 1 {
		t.Errorf("the edge was asked %d times, want once: it is the agent that has failed, and it is no cancel", n)
	}
}

func TestARunThatIsGivenUpIsCancelled(t *testing.T) {
	t.Parallel()
	for about, give := range map[string]func(*Run, context.CancelFunc){
		"closed":        func(r *Run, _ context.CancelFunc) { r.Close() },
		"context ended": func(r *Run, end context.CancelFunc) { end(); r.Result() },
		"ended in a loop": func(r *Run, end context.CancelFunc) {
			for range r.Chunks() {
				end()
			}
		},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, func(n int, w http.ResponseWriter, r *http.Request, e *Envelope) {
				if e.Header.Type == Notification {
					stored(n, w, r, e)
					return
				}
				begin(w)
				tell(w, "", "", envelopeOf(ChunkType, "bob", "c", e.Header.MsgID, `{"text":"1"}`))
				lasts(r)
			}, none)
			ctx, end := context.WithCancel(await.Context(t))
			defer end()
			run, err := client(t, quick(s.URL)).Execute(ctx, "bob", Execute{Query: "wait", ID: "task-1"})
			if err != nil {
				t.Fatal(err)
			}
			give(run, end)
			run.Close()
			if said := s.said(); len(said) != 2 || !strings.Contains(said[1], `"parent_id":"task-1","type":"notification"`) || !strings.Contains(said[1], `{"action":"cancel"}`) {
				t.Errorf("the edge got %q, want a cancel", said)
			}
		})
	}
}

func TestAnAnswerInChunksAloneIsTheirText(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(_ int, w http.ResponseWriter, _ *http.Request, e *Envelope) {
		begin(w)
		for _, text := range []string{`{"text":"no"}`, `{"text":"on"}`} {
			tell(w, "", "", envelopeOf(ChunkType, "bob", "c", e.Header.MsgID, text))
		}
		tell(w, "", "", envelopeOf(Response, "bob", "r", e.Header.MsgID, `{}`))
	}, none)
	got, err := client(t, quick(s.URL)).CallTool(await.Context(t), "bob", "time", map[string]string{"zone": "UTC"})
	if err != nil || string(got) != `"noon"` {
		t.Errorf("CallTool = %s, %v, want noon", got, err)
	}
	if want := `{"action":"call_tool","tool_name":"time","arguments":{"zone":"UTC"}}`; !strings.Contains(s.said()[0], want) {
		t.Errorf("the edge got %s, want %s in it", s.said()[0], want)
	}
}

func TestTheDeadlineOfTheContextGoesWithTheRequest(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(_ int, w http.ResponseWriter, _ *http.Request, e *Envelope) {
		if e.Metadata.DeadlineMS <= 0 || e.Metadata.DeadlineMS > time.Hour.Milliseconds() {
			t.Errorf("deadline_ms = %d, want what is left of an hour", e.Metadata.DeadlineMS)
		}
		w.Write([]byte(envelopeOf(Response, "bob", "r", e.Header.MsgID, `{"ok":true}`)))
	}, none)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	e, err := client(t, quick(s.URL)).Ask(ctx, &Envelope{Header: Header{To: "bob"}, Payload: json.RawMessage(`{}`)})
	if err != nil || string(e.Payload) != `{"ok":true}` {
		t.Errorf("Ask = %+v, %v", e, err)
	}
}

func TestARefusedTokenIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(n int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		if r.Header.Get("Authorization") != "Bearer 1" {
			refuse(w, http.StatusUnauthorized, "UNAUTHORIZED")
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}, none)
	cfg, n := quick(s.URL), -1
	cfg.TokenSource = func(context.Context) (string, error) { n++; return fmt.Sprint(n), nil }
	e := &Envelope{Header: Header{Type: Notification, To: "bob"}}
	if err := client(t, cfg).Send(await.Context(t), e); err != nil {
		t.Error(err)
	}
	cfg = quick(s.URL)
	cfg.Token = "old"
	err := client(t, cfg).Send(await.Context(t), e)
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != agora.Unauthorized || strings.Contains(err.Error(), "old") {
		t.Errorf("Send with one token = %v, want UNAUTHORIZED", err)
	}
}

func TestACloseEndsWhatGoesOn(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s := newScript(t, func(_ int, w http.ResponseWriter, r *http.Request, _ *Envelope) {
		close(asked)
		lasts(r)
	}, none)
	c := client(t, quick(s.URL))
	ended := make(chan error, 1)
	go func() {
		_, err := c.Ask(t.Context(), &Envelope{Header: Header{To: "bob"}})
		ended <- err
	}()
	await.Recv(t, "the request", asked)
	c.Close()
	if err := await.Recv(t, "its end", ended); !errors.Is(err, ErrClosed) {
		t.Errorf("Ask = %v, want %v", err, ErrClosed)
	}
}

func TestConfigurationsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for about, cfg := range map[string]Config{
		"no address":      {Agent: "me"},
		"no web address":  {URLs: []string{"ftp://x"}, Agent: "me"},
		"the cluster":     {URLs: []string{"http://x"}, Agent: "agora"},
		"a relative root": {URLs: []string{"http://x"}, Agent: "me", Root: "docs"},
	} {
		if _, err := New(cfg); agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("%s: New = %v, want INVALID_REQUEST", about, err)
		}
	}
	if _, err := NewHost(Config{URLs: []string{"http://x"}}); err == nil {
		t.Error("a host without an id is made")
	}
	c := client(t, Config{URLs: []string{"ws://x/"}})
	if got := c.edge(); got != "http://x" {
		t.Errorf("address = %s, want http://x", got)
	}
	if err := c.Send(t.Context(), &Envelope{}); agora.AsError(err).Code != agora.InvalidRequest {
		t.Errorf("Send of nobody = %v, want INVALID_REQUEST", err)
	}
}
