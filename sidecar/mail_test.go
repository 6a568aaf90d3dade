package sidecar_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/sidecar"
)

// posted is something that was posted to the agent.
type posted struct {
	header http.Header
	body   string
}

func (p posted) String() string {
	h := p.header
	return fmt.Sprintf("%s %s %s %s", h.Get("Agora-Kind"), h.Get("Agora-From"), h.Get("Agora-Space"), p.body)
}

// gather has the agent take what is posted, and answer nothing.
func (p *plain) gather() <-chan posted {
	all := make(chan posted, 1024)
	p.takes(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err == nil {
			all <- posted{r.Header.Clone(), string(b)}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return all
}

func delivering(c *sidecar.Config) { c.Deliver = "/in" }

func TestMessagesArePostedAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	p := newPlain(t)
	all := p.gather()
	s.run(p, delivering)
	anna := s.dial("Anna Ö")
	for _, payload := range []string{`{ "a":1.0, "b":"é" }`, `"text"`, `null`, `{"action":"dance"}`} {
		if err := anna.Send(await.Context(t), "plain", json.RawMessage(payload)); err != nil {
			t.Fatal(err)
		}
		got := await.Recv(t, "the message is posted", all)
		h := got.header
		if got.body != payload || h.Get("Agora-From") != "Anna%20%C3%96" || h.Get("Agora-Kind") != "message" || h.Get("Content-Type") != "application/json" ||
			h.Get("Agora-Seq") == "" || h.Get("Agora-Redelivered") != "" || h.Get("Agora-Request-Id") != "" {
			t.Errorf("posted %s with %v, want %s", got.body, h, payload)
		}
	}
	if err := anna.Reply(await.Context(t), "plain", "r-1", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	if got := await.Recv(t, "the reply is posted", all); got.header.Get("Agora-Kind") != "reply" || got.header.Get("Agora-Request-Id") != "r-1" {
		t.Errorf("posted %v with %v", got, got.header)
	}
}

// asks has an agent ask, and returns the whole reply, and its stream's text.
func asks(t *testing.T, c *client.Client, payload string) (string, string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	m, err := c.Request(ctx, "plain", json.RawMessage(payload))
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.Text(ctx)
	return strings.Replace(string(m.Payload), m.RequestID(), "ID", 1), text, err
}

func TestTheAgentsAnswerIsTheReply(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	p := newPlain(t)
	p.takes(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Agora-Request-Id") == "" {
			t.Error("the agent is not told the name of the request")
		}
		r.Method = http.MethodPost
		b, _ := io.ReadAll(r.Body)
		var asked struct{ Path string }
		_ = json.Unmarshal(b, &asked)
		r.URL.Path = asked.Path
		p.mux().ServeHTTP(w, r)
	})
	s.run(p, delivering)
	anna := s.dial("anna")
	for _, one := range []struct{ asked, payload, text string }{
		{`{"path":"/greet/x"}`, `{"request_id":"ID","body":"","hello":"x","method":"POST","type":"application/json"}`, ""},
		{`{"path":"/words"}`, `{"request_id":"ID"}`, "one two three"},
		{`{"path":"/events"}`, `{"request_id":"ID"}`, "onetwo\nlineslast"},
		{`{"path":"/list"}`, `[1.0, 2]`, ""},
		{`{"path":"/bytes"}`, `{"request_id":"ID","data":"//4=","media":"image/png"}`, ""},
		{`{"path":"/else"}`, `"secret"`, ""},
		{`{"path":"/fail/404"}`, `{"request_id":"ID","error":{"code":"NOT_FOUND","message":"the agent answered 404: it is so"}}`, ""},
		{`{"path":"/large"}`, `{"request_id":"ID"}`, strings.Repeat("x", 1<<20)},
		{`{"action":"call_tool","tool_name":"events","arguments":{}}`, `{"request_id":"ID"}`, "onetwo\nlineslast"},
		{`{"action":"call_tool","tool_name":"none","arguments":{}}`, `{"request_id":"ID","error":{"code":"NOT_FOUND","message":"the agent has no skill \"none\""}}`, ""},
		{`{"action":"handoff","method":"GET","path":"/list"}`, `[1.0, 2]`, ""},
		{`{"action":"handoff","method":"GET","path":"/words"}`, `{"request_id":"ID"}`, "one two three"},
		{`{"action":"handoff","method":"GET"}`, `{"request_id":"ID","error":{"code":"INVALID_REQUEST","message":"path is missing"}}`, ""},
		{`{"action":"handoff","method":"GET","path":"/in"}`, `{"request_id":"ID","error":{"code":"NOT_FOUND","message":"the agent has no skill with this path"}}`, ""},
	} {
		payload, text, err := asks(t, anna, one.asked)
		if payload != one.payload || text != one.text || err != nil {
			t.Errorf("%s: the reply is %.200s and %.200q %v, want %s and %.200q", one.asked, payload, text, err, one.payload, one.text)
		}
	}
	payload, text, err := asks(t, anna, `{"path":"/broken"}`)
	if err == nil && !strings.Contains(payload, `"code":"STREAM_ABORTED"`) {
		t.Errorf("an answer that breaks off is %s %q, and looks whole", payload, text)
	}
}

func TestAStreamIsPostedAsItComes(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	lines, ends := make(chan string, 16), make(chan error, 16)
	p.takes(func(w http.ResponseWriter, r *http.Request) {
		in := bufio.NewScanner(r.Body)
		for in.Scan() {
			lines <- in.Text()
		}
		ends <- in.Err()
		io.WriteString(w, r.Header.Get("Content-Type"))
	})
	s.run(p, delivering)
	anna := s.dial("anna")
	x, err := anna.RequestStream(await.Context(t), "plain", json.RawMessage(`{"a":
1}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one\n", "<é>"} {
		io.WriteString(x, text)
		if text == "one\n" {
			if got := await.Recv(t, "the payload", lines); !strings.HasPrefix(got, `{"payload":{`) || !strings.HasSuffix(got, `"a": 1}}`) {
				t.Errorf("the first line is %s", got)
			}
		}
		want, _ := json.Marshal(text)
		if got := await.Recv(t, "a piece, while the stream goes on", lines); got != strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(`{"text":`+string(want)+`}`) {
			t.Errorf("a piece is %s, want %s", got, want)
		}
	}
	if err := x.CloseWith(json.RawMessage(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	if got := await.Recv(t, "the end", lines); got != `{"end":{"n":1}}` {
		t.Errorf("the end is %s", got)
	}
	if err := await.Recv(t, "the body ends", ends); err != nil {
		t.Errorf("the body ends with %v", err)
	}
	if m, err := x.Reply(); err != nil || string(m.Payload) != `"application/x-ndjson"` {
		t.Errorf("the reply is %+v %v", m, err)
	}
	st, err := anna.OpenStream(await.Context(t), "plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	st.WriteString("x")
	await.Recv(t, "its payload", lines)
	await.Recv(t, "its text", lines)
	st.Cancel()
	if err := await.Recv(t, "the body of what was cancelled", ends); err == nil {
		t.Error("what was cancelled looks whole")
	}
}

func TestWithoutAPathMessagesAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, nil)
	payload, _, err := asks(t, s.dial("anna"), `{"q":1}`)
	if err != nil || !strings.Contains(payload, `"code":"NOT_FOUND"`) || p.asked.Load() != 0 {
		t.Errorf("the reply is %s %v", payload, err)
	}
}

func TestWhileTheAgentIsAwayMessagesWaitInOrderAndRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	all := p.gather()
	s.run(p, delivering)
	anna, bob := s.dial("anna"), s.dial("bob")
	p.stop()
	const n = 20
	for i := range n {
		for _, c := range []*client.Client{anna, bob} {
			if err := c.Send(await.Context(t), "plain", i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if payload, _, err := asks(t, bob, `{"action":"handoff","method":"POST","path":"/greet/x"}`); err != nil || !strings.Contains(payload, `"code":"STREAM_ABORTED"`) {
		t.Errorf("a request is answered %s %v", payload, err)
	}
	p.again()
	got := map[string][]string{}
	redelivered := 0
	for range 2 * n {
		one := await.Recv(t, "a message", all)
		from := one.header.Get("Agora-From")
		got[from] = append(got[from], one.body)
		if one.header.Get("Agora-Redelivered") == "true" {
			redelivered++
		}
	}
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint(i))
	}
	for from, bodies := range got {
		if !slices.Equal(bodies, want) {
			t.Errorf("of %s came %v, want each once and in order", from, bodies)
		}
	}
	if redelivered == 0 {
		t.Error("what was tried before is not marked")
	}
}

func TestASenderWhoseMessageIsNotTakenHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	all, busy := make(chan string, 64), true
	var mu sync.Mutex
	p.takes(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		b, _ := io.ReadAll(r.Body)
		from := r.Header.Get("Agora-From")
		switch {
		case from == "anna" && busy:
			w.WriteHeader(http.StatusServiceUnavailable)
		case string(b) == `"bad"`:
			w.WriteHeader(http.StatusBadRequest)
		default:
			all <- from + " " + string(b)
		}
	})
	s.run(p, delivering)
	for id, payloads := range map[string][]string{"anna": {"1", "2"}, "bob": {"bad", "3"}} {
		c := s.dial(id)
		for _, text := range payloads {
			if err := c.Send(await.Context(t), "plain", text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := await.Recv(t, "bob's message, and not the bad one", all); got != `bob "3"` {
		t.Errorf("taken is %s", got)
	}
	mu.Lock()
	busy = false
	mu.Unlock()
	for _, want := range []string{`anna "1"`, `anna "2"`} {
		if got := await.Recv(t, "anna's messages", all); got != want {
			t.Errorf("taken is %s, want %s", got, want)
		}
	}
}

func TestWhatWasNotTakenWhenTheSidecarEndsComesToTheNext(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	first := p.gather()
	r := s.run(p, delivering)
	anna := s.dial("anna")
	send := func(text string) {
		if err := anna.Send(await.Context(t), "plain", text); err != nil {
			t.Fatal(err)
		}
	}
	send("taken")
	await.Recv(t, "the first", first)
	var refused sync.WaitGroup
	tried := make(chan bool, 1024)
	p.takes(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		select {
		case tried <- true:
		default:
		}
	})
	for _, text := range []string{"one", "two"} {
		send(text)
	}
	await.Recv(t, "it is tried", tried)
	if err := r.stops(); err != nil {
		t.Fatal(err)
	}
	refused.Wait()
	all := p.gather()
	s.run(p, delivering)
	for _, want := range []string{`"one"`, `"two"`} {
		got := await.Recv(t, "what was not taken", all)
		if got.body != want {
			t.Errorf("it begins with %v, want %s", got, want)
		}
		if want == `"one"` && got.header.Get("Agora-Redelivered") != "true" {
			t.Error("it is not marked")
		}
	}
}

func TestTheAgentSpeaksByTheAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	p := newPlain(t)
	all := p.gather()
	r := s.run(p, delivering)
	anna := s.dial("anna")
	call := func(path, body string, header ...string) (int, string) {
		q, err := http.NewRequestWithContext(await.Context(t), http.MethodPost, r.admin+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			q.Header.Set(header[i], header[i+1])
		}
		return s.does(q)
	}
	if status, body := call("/send", `{"to":"anna","payload":{"a": 1.0}}`); status != 202 {
		t.Fatalf("sending is %d %s", status, body)
	}
	for m, err := range anna.Messages(await.Context(t)) {
		if err != nil || m.From != "plain" || string(m.Payload) != `{"a": 1.0}` {
			t.Errorf("anna is sent %+v %v", m, err)
		}
		break
	}
	room, err := anna.Join(await.Context(t), "room")
	if err != nil {
		t.Fatal(err)
	}
	if status, body := call("/spaces/room/join", ``); status != 200 || !strings.Contains(body, `"anna"`) {
		t.Errorf("joining is %d %s", status, body)
	}
	if status, body := call("/spaces/room/publish", `{"n":1}`); status != 202 {
		t.Errorf("publishing is %d %s", status, body)
	}
	if err := room.PublishText(await.Context(t), "hi"); err != nil {
		t.Fatal(err)
	}
	for heard := false; !heard; {
		got := await.Recv(t, "what happens in the space", all)
		heard = got.header.Get("Agora-From") == "anna" && strings.Contains(got.body, `"text":"hi"`)
		if got.header.Get("Agora-Space") != "room" {
			t.Errorf("posted %v", got)
		}
	}
	if status, body := call("/spaces/room/leave", ``); status != 204 {
		t.Errorf("leaving is %d %s", status, body)
	}
	await.True(t, "it has left", func() bool { return slices.Equal(room.Members(), []string{"anna"}) })
	for _, one := range []struct {
		path, body string
		want       int
	}{
		{"/spaces/room/publish", `{}`, 403}, {"/spaces/room/leave", ``, 403}, {"/send", `{`, 400}, {"/ask", `{`, 400}, {"/ask", `{"to":"nobody","payload":{}}`, 404}, {"/ask", `{"to":"anna","payload":1}`, 400}, {"/reply", `{"to":"anna"}`, 400}, {"/reply", `{"to":"nobody","request_id":"r"}`, 404}, {"/send", `{"to":""}`, 400}, {"/send", `{"to":"nobody","payload":1}`, 404},
		{"/spaces/No Space/join", ``, 400}, {"/send", `{"to":"anna","payload":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
	} {
		if status, body := call(strings.ReplaceAll(one.path, " ", "%20"), one.body); status != one.want {
			t.Errorf("%s %.40s is %d %s, want %d", one.path, one.body, status, body, one.want)
		}
	}
	if status, _ := call("/send", `{"to":"anna","payload":1}`, "Origin", "http://evil.example"); status != 403 {
		t.Errorf("a web page is answered %d, want 403", status)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ok", "/metrics": "agora_sidecar_delivered_total"} {
		q, err := http.NewRequestWithContext(await.Context(t), http.MethodGet, r.admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := s.does(q); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s is %d %s", path, status, body)
		}
	}
}

func TestASidecarEndsWhenAnotherTakesItsID(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, nil)
	other, err := sidecar.New(sidecar.Config{Agent: "http://" + p.address, Client: client.Config{URLs: s.URLs()}, Peer: sidecar.Peer{Listen: "none", Relays: []string{}}, Limits: sidecar.Limits{Retry: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Run(await.Context(t)); err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "AGENT_EXISTS") {
		t.Errorf("a second one ends with %v, want AGENT_EXISTS", err)
	}
}
