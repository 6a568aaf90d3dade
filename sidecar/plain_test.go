package sidecar_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

const card = `{"name":"plain", "version":"1.0","skills":[{"name":"greet","path":"/greet/{name}","method":"POST"},` +
	`{"name":"slow","path":"/slow"},{"name":"fail","path":"/fail/{status}","methods":["GET","POST"]},{"name":"words","path":"/words"},{"name":"events","path":"/events"},` +
	`{"name":"broken","path":"/broken"},{"name":"large","path":"/large"},{"name":"away","path":"/away"},{"name":"silent","path":"/silent"},{"name":"list","path":"/list"},{"name":"bytes","path":"/bytes"}]}`

// plain is an agent of plain HTTP.
type plain struct {
	t       *testing.T
	address string
	card    atomic.Pointer[string]
	asked   atomic.Int32  // requests but for the card
	left    atomic.Int32  // those of /slow whose asker has gone
	hold    chan struct{} // closed: /slow answers
	held    chan struct{} // has a token for each that /slow has begun
	deliver atomic.Pointer[http.HandlerFunc]
	stop    func()
}

// newPlain starts an agent, which ends with the test.
func newPlain(t *testing.T) *plain {
	t.Helper()
	p := &plain{t: t, hold: make(chan struct{}), held: make(chan struct{}, 1024)}
	p.shows(card)
	p.start("127.0.0.1:0")
	t.Cleanup(func() { p.stop() })
	return p
}

func (p *plain) shows(card string) { p.card.Store(&card) }

// start has it listen; stop ends it, and every connection.
func (p *plain) start(address string) {
	p.t.Helper()
	var l net.Listener
	var err error
	await.True(p.t, "the agent's port is free", func() bool {
		l, err = net.Listen("tcp", address)
		return err == nil
	})
	if p.address == "" {
		p.address = l.Addr().String()
	}
	server := &http.Server{Handler: p.mux(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(l)
	}()
	p.stop = sync.OnceFunc(func() {
		server.Close()
		<-over
	})
}

// again has one that was stopped listen as before.
func (p *plain) again() { p.start(p.address) }

func (p *plain) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /card", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, *p.card.Load())
	})
	handle := func(path string, f http.HandlerFunc) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			p.asked.Add(1)
			f(w, r)
		})
	}
	handle("/greet/{name}", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"hello": r.PathValue("name"), "method": r.Method, "body": string(b), "type": r.Header.Get("Content-Type")})
	})
	handle("/slow", func(w http.ResponseWriter, r *http.Request) {
		p.held <- struct{}{}
		select {
		case <-p.hold:
		case <-r.Context().Done():
			p.left.Add(1)
		}
		io.WriteString(w, "done")
	})
	handle("/fail/{status}", func(w http.ResponseWriter, r *http.Request) {
		status := map[string]int{"301": 301, "304": 304, "401": 401, "404": 404, "422": 422, "500": 500, "503": 503}[r.PathValue("status")]
		w.Header().Set("Location", "http://"+p.address+"/greet/redirected")
		w.WriteHeader(status)
		if status >= 400 {
			io.WriteString(w, "it is so")
		}
	})
	handle("/words", func(w http.ResponseWriter, _ *http.Request) {
		for _, word := range []string{"one ", "two ", "three"} {
			io.WriteString(w, word)
			w.(http.Flusher).Flush()
		}
	})
	handle("/events", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{": hi\n\n", "event: x\ndata: one\n\n", "data: two\ndata:lines\r\n\n", "id: 7\n\n", "data\n\n", "data: last"} {
			io.WriteString(w, event)
			w.(http.Flusher).Flush()
		}
	})
	handle("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
	})
	handle("/large", func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte("x"), 1<<20)) })
	handle("/away", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	handle("/silent", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a word, ")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	handle("/list", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "[1.0, 2]\n")
	})
	handle("/bytes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		w.Write([]byte{0xff, 0xfe})
	})
	handle("/", func(w http.ResponseWriter, r *http.Request) {
		if f := p.deliver.Load(); f != nil && r.URL.Path == "/in" {
			(*f)(w, r)
			return
		}
		io.WriteString(w, "secret")
	})
	return mux
}

// takes has what is posted to /in be taken by f.
func (p *plain) takes(f http.HandlerFunc) { p.deliver.Store(&f) }
