package sidecar_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
)

// TestARequestThatIsGivenUpEndsAtTheAgent has those who ask go away, in the ways that they have, while the agent is at
// it.
func TestARequestThatIsGivenUpEndsAtTheAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.blind.Store(true) // requests come by mail
	p := newPlain(t)
	begun, ended := make(chan http.Header, 8), make(chan struct{}, 8)
	holds := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- r.Header
		<-r.Context().Done()
		ended <- struct{}{}
	}
	p.takes(holds)
	s.run(p, delivering)
	anna := s.delegator("anna", 0)

	call, err := anna.Handoff(await.Context(t), "plain", client.Handoff{Path: "/slow"})
	if err != nil {
		t.Fatal(err)
	}
	await.Recv(t, "a handoff is in progress", p.held)
	call.Close()
	await.True(t, "a handoff that is given up ends", func() bool { return p.left.Load() == 1 })

	ctx, leave := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.HTTP(0)+"/agents/plain/ask?as=carl", strings.NewReader(`{"q":1}`))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if resp, err := http.DefaultClient.Do(q); err == nil {
			resp.Body.Close()
		}
	}()
	await.Recv(t, "a question over HTTP is in progress", begun)
	leave()
	await.Recv(t, "a question whose asker is gone ends", ended)

	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := anna.Request(soon, "plain", json.RawMessage(`{"q":2}`)); err == nil {
		t.Error("a question without an answer is answered")
	}
	if h := await.Recv(t, "a question with a deadline was there", begun); h.Get("Agora-Deadline-Ms") == "" {
		t.Errorf("it was posted with %v, want its deadline", h)
	}
	await.Recv(t, "a question whose time is over ends", ended)
}

func TestQuestionsOfOneSenderAreAnsweredInAnyOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	first, release := make(chan struct{}), make(chan struct{})
	p.takes(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "first") {
			close(first)
			<-release
		}
		io.WriteString(w, "done")
	})
	s.run(p, delivering)
	anna := s.dial("anna")
	answered := make(chan error, 1)
	go func() {
		_, err := anna.Request(await.Context(t), "plain", json.RawMessage(`{"q":"first"}`))
		answered <- err
	}()
	await.Recv(t, "the first question is there", first)
	if _, err := anna.Request(await.Context(t), "plain", json.RawMessage(`{"q":"second"}`)); err != nil {
		t.Errorf("the second question: %v", err)
	}
	close(release)
	if err := await.Recv(t, "the first is answered", answered); err != nil {
		t.Error(err)
	}
}
