package sidecar

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/origintest"
)

// Every route of the API for the agent refuses what any page makes a browser send, whatever its origin: it speaks for
// the agent.
func TestNoPageSpeaksForTheAgent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &api{log: slog.New(slog.DiscardHandler), up: new(upstream), state: new(state), stats: new(stats)}
	ctx, end := context.WithCancel(t.Context())
	var served sync.WaitGroup
	served.Go(func() { a.serve(ctx, l) })
	t.Cleanup(func() {
		end()
		served.Wait()
	})
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	at := "http://" + l.Addr().String()
	patterns := origintest.Routes(t, a.handler().(*http.ServeMux))
	if len(patterns) < 9 {
		t.Fatalf("the routes are %q, want all", patterns)
	}
	for _, pattern := range append(patterns, "/nowhere") {
		for _, q := range origintest.Requests(pattern) {
			for _, p := range slices.Concat(origintest.Foreign, origintest.Welcome) {
				got, text := p.Ask(t, c, at, q)
				p.Refused(t, got, q.Method+" "+q.Target, text)
			}
			for _, p := range origintest.Programs {
				if got, text := p.Ask(t, c, at, q); got == http.StatusForbidden || strings.HasPrefix(q.Method, "GET /healthz") && got != http.StatusOK {
					t.Errorf("%s %s: %s is answered %d %s", q.Method, q.Target, p.About, got, text)
				}
			}
		}
	}
}
