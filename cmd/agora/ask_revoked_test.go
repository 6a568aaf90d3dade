package main

import (
	"bufio"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/internal/await"
)

// An answer that is being read ends with the credentials of who asked, and the agent that answers is told.
func TestAnAnswerOverHTTPEndsWhenItsCallersCredentialsAreTakenBack(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	bob, status := f.open(t, "?agent_id=jane", f.jane)
	if bob == nil {
		t.Fatalf("the agent is refused with %d", status)
	}
	bob.awaits("agent.registered")
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: porttest.Trusting(t, f.certs.CA), DisableKeepAlives: true}}
	resp := asks(t, c, "https://"+f.host+"/agents/jane/ask", `{"request_id":"r"}`, "Accept: text/event-stream",
		"Authorization: Bearer "+f.signed(t, "joe", "id-7", time.Now().Add(time.Hour)))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("asked: %s", resp.Status)
	}
	if m := bob.awaits("message"); m.From != "joe" {
		t.Fatalf("asked by %q, want joe", m.From)
	}
	bob.say(`{"type":"reply","to":"joe","stream_id":"s","stream":true,"payload":{"request_id":"r"}}`)
	lines := make(chan string, 64)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			if text := in.Text(); text != "" && text != ":" {
				lines <- text
			}
		}
	}()
	for _, want := range []string{"event: start", `data: {"request_id":"r"}`} {
		if got := await.Recv(t, want, lines); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if err := os.WriteFile(f.list, []byte("jti id-7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := await.Recv(t, "an error", lines); got != "event: error" {
		t.Fatalf("got %q, want an error", got)
	}
	if got := await.Recv(t, "its code", lines); !strings.HasPrefix(got, `data: {"error":{"code":"UNAUTHORIZED"`) {
		t.Fatalf("got %q, want UNAUTHORIZED", got)
	}
	if got, more := <-lines; more {
		t.Errorf("then came %q, want the end", got)
	}
	if m := bob.awaits("cancel"); m.From != "joe" || m.StreamID != "s" {
		t.Errorf("the agent is told %+v, want that its answer is not wanted", m)
	}
}
