package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/gorilla/websocket"
)

func TestARefusedHandshakeIsToldInTheEdgesOwnWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		want   agora.Error
	}{
		{401, "UNAUTHORIZED: these credentials are revoked\n", agora.Error{Code: agora.Unauthorized, Message: "these credentials are revoked"}},
		{503, "UNAVAILABLE: the edge is going away\n", agora.Error{Code: agora.Unavailable, Message: "the edge is going away", RetryAfter: 2 * time.Second}},
		{429, "RATE_LIMITED: too many: wait\n", agora.Error{Code: agora.RateLimited, Message: "too many: wait", RetryAfter: 2 * time.Second}},
		{502, "<html>no upstream: none</html>", agora.Error{Code: agora.Unavailable, Message: "the edge refused the connection: 502 Bad Gateway", RetryAfter: 2 * time.Second}},
		{403, "", agora.Error{Code: agora.Forbidden, Message: "the edge refused the connection: 403 Forbidden"}},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.want.RetryAfter > 0 {
				w.Header().Set("Retry-After", "2")
			}
			http.Error(w, strings.TrimSuffix(c.body, "\n"), c.status)
		}))
		_, err := Dial(await.Context(t), Config{URLs: []string{s.URL}, Agent: "me"})
		if e := agora.AsError(err); *e != c.want {
			t.Errorf("%d %s: Dial = %+v, want %+v", c.status, c.body, e, c.want)
		}
		s.Close()
	}
}

func TestAnAddressMayBeThatOfAPage(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"http://a:1": "ws://a:1/ws", "https://a/": "wss://a/ws", "https://a/agents?token=t": "wss://a/agents?token=t", " HTTP://a": "ws://a/ws",
	} {
		if got, err := (Config{URLs: []string{from}}).addresses(); err != nil || got[0] != want {
			t.Errorf("%s is taken as %v, %v, want %s", from, got, err, want)
		}
	}
	for _, wrong := range []string{"ftp://a", "a:8080", "a", "", "http://"} {
		if _, err := (Config{URLs: []string{wrong}}).addresses(); agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("%s: %v, want INVALID_REQUEST", wrong, err)
		}
	}
}

func TestAClientTellsHowItStands(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	told := make(chan Status, 64)
	_, conn := dial(t, p, Config{OnStatus: func(s Status) { told <- s }})
	next := func() Status { t.Helper(); return await.Recv(t, "a status", told) }
	if s := next(); s.Err != nil || s.Resumed || s.Edge != p.url+"/ws" {
		t.Errorf("connected: %+v, want so at %s, in a new session", s, p.url)
	}
	conn.cut()
	if s := next(); s.Err == nil || s.Edge != p.url+"/ws" {
		t.Errorf("cut: %+v, want why it was lost", s)
	}
	p.accept().cut() // does not answer
	if s := next(); agora.AsError(s.Err).Code != agora.Unavailable {
		t.Errorf("no answer: %+v, want UNAVAILABLE", s)
	}
	conn = p.accept()
	conn.register(true)
	if s := next(); s.Err != nil || !s.Resumed {
		t.Errorf("back: %+v, want so in the session of before", s)
	}
	conn.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(closeKicked, "out"), time.Now().Add(await.Long))
	if s := next(); !errors.Is(s.Err, ErrKicked) {
		t.Errorf("kicked: %+v, want ErrKicked", s)
	}
	p.accept().register(false)
	if s := next(); s.Err != nil || s.Resumed {
		t.Errorf("back: %+v, want so in a new session", s)
	}
}

// One edge that is gone says less than another one that asks to come back later.
func TestOfSeveralRefusalsTheOneThatSaysWhenToComeBackIsTold(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		http.Error(w, "UNAVAILABLE: later", http.StatusServiceUnavailable)
	}))
	defer s.Close()
	for range 8 { // they are tried in any order
		_, err := Dial(await.Context(t), Config{URLs: []string{s.URL, "ws://127.0.0.1:1"}, Agent: "me"})
		if e := agora.AsError(err); e.RetryAfter != 3*time.Second {
			t.Fatalf("Dial = %+v, want when to come back", e)
		}
	}
}

func TestTheAgentOfCredentialsForOneAlone(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{"": "", "jane": "jane", "Jane%20Doe%2F%C3%A9": "Jane Doe/é", "%zz": ""} {
		p := newPeer(t)
		p.greet = http.Header{}
		if said != "" {
			p.greet.Set("Agora-Agent", said)
		}
		ask := async(func() (string, error) {
			return AgentOf(await.Context(t), Config{URLs: []string{p.url}, Token: "t"})
		})
		conn := p.accept()
		if end := conn.closed(); !websocket.IsCloseError(end, websocket.CloseNormalClosure) {
			t.Errorf("it left with %v, want a goodbye", end)
		}
		if got := ask(t); got != want {
			t.Errorf("the edge says %q: AgentOf = %q, want %q", said, got, want)
		}
	}
	if _, err := AgentOf(context.Background(), Config{URLs: []string{newPeer(t).url}, Token: "wrong"}); agora.AsError(err).Code != agora.Unauthorized {
		t.Errorf("with a token that is not good: %v, want UNAUTHORIZED", err)
	}
}
