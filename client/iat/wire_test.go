package iat

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// script is an edge of which a test says what it answers. Its handlers are called one at a time for each path.
type script struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex // guards the fields below
	posts []string   // bodies, in order
	gets  []*http.Request
}

// newScript starts an edge. post answers the n-th POST, from 0, and events the n-th downlink.
func newScript(t *testing.T, post, events func(n int, w http.ResponseWriter, r *http.Request, e *Envelope)) *script {
	s := &script{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /a2a", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var e Envelope
		if err == nil {
			err = json.Unmarshal(b, &e)
		}
		if err != nil {
			t.Errorf("POST of %q: %v", b, err)
		}
		s.mu.Lock()
		s.posts = append(s.posts, string(b))
		n := len(s.posts) - 1
		s.mu.Unlock()
		post(n, w, r, &e)
	})
	mux.HandleFunc("GET /a2a/", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.gets = append(s.gets, r)
		n := len(s.gets) - 1
		s.mu.Unlock()
		events(n, w, r, nil)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// said returns the bodies of POSTs so far.
func (s *script) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.posts)
}

// asked returns the GETs so far.
func (s *script) asked() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.gets)
}

func none(int, http.ResponseWriter, *http.Request, *Envelope) {}

func stored(_ int, w http.ResponseWriter, _ *http.Request, _ *Envelope) {
	w.WriteHeader(http.StatusAccepted)
}

// lasts keeps an answer open until its peer goes.
func lasts(r *http.Request) { <-r.Context().Done() }

// begin begins an answer of events.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
}

// tell writes an event.
func tell(w http.ResponseWriter, id, name, data string) {
	for _, f := range [][2]string{{"id", id}, {"event", name}, {"data", data}} {
		if f[1] != "" {
			fmt.Fprintf(w, "%s: %s\n", f[0], f[1])
		}
	}
	io.WriteString(w, "\n")
	w.(http.Flusher).Flush()
}

// envelopeOf returns an envelope as an edge writes it.
func envelopeOf(typ Type, from, id, parent, payload string) string {
	return fmt.Sprintf(`{"header":{"msg_id":%q,"parent_id":%q,"type":%q,"from":%q,"to":"me","timestamp":1700000000},"metadata":{"ttl":2},"payload":%s}`, id, parent, typ, from, payload)
}

// refuse answers with an error in the words of an edge.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, faultText(code))
}

func faultText(code string) string {
	return fmt.Sprintf(`{"header":{"msg_id":"f","type":"response","from":"agora"},"payload":{"error":{"code":%q,"message":"no","path":"/header/to"}}}`, code)
}

// quick is a configuration that loses no time.
func quick(urls ...string) Config {
	return Config{URLs: urls, Agent: "me", Backoff: Backoff{Min: time.Millisecond, Max: time.Millisecond}, Patience: await.Long}
}

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
