package sidecar_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
)

// asks asks by the sidecar's API.
func (r *running) asks(ctx context.Context, body string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.admin+"/ask", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(q)
}

// next returns the next message of an agent, and acknowledges it.
func next(t *testing.T, c *client.Client) *client.Message {
	t.Helper()
	for m, err := range c.Messages(await.Context(t)) {
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return nil
}

func TestTheAgentAsksAndHasTheReplyAsItComes(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	r := s.run(newPlain(t), nil)
	anna := s.dial("anna")
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	answered := make(chan *http.Response, 1)
	ask := func(body string) {
		resp, err := r.asks(t.Context(), body)
		if err != nil {
			t.Error(err)
		}
		answered <- resp
	}
	read := func() (int, string, string) {
		t.Helper()
		resp := await.Recv(t, "an answer", answered)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Content-Type"), string(b)
	}

	go ask(`{"to":"anna","payload":{"q": 1.0}}`)
	m := next(t, anna)
	if m.From != "plain" || !strings.HasSuffix(string(m.Payload), `"q": 1.0}`) || m.RequestID() == "" {
		t.Errorf("anna is asked %+v by %s", m, m.From)
	}
	if err := m.Reply(t.Context(), json.RawMessage(`{"a": 2.0}`)); err != nil {
		t.Fatal(err)
	}
	if status, media, body := read(); status != 200 || media != "application/json" || !strings.HasSuffix(body, `"a": 2.0}`) {
		t.Errorf("a whole reply is %d %s %s", status, media, body)
	}

	go ask(`{"to":"anna"}`)
	out, err := next(t, anna).ReplyStream(t.Context(), map[string]string{"about": "it"})
	if err != nil {
		t.Fatal(err)
	}
	resp := await.Recv(t, "the beginning of a streamed reply", answered)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	line := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Errorf("a line is %s, %v; want %s", lines.Text(), lines.Err(), want)
		}
	}
	line(`"about":"it"}}`)
	for _, text := range []string{"one", "", "<two>\n"} {
		out.WriteString(text)
		line(`{"text":"` + strings.ReplaceAll(text, "\n", `\n`) + `"}`)
	}
	if err := out.CloseWith(json.RawMessage(`{"n":2}`)); err != nil {
		t.Fatal(err)
	}
	line(`{"end":{"n":2}}`)
	if lines.Scan() {
		t.Errorf("behind the end is %s", lines.Text())
	}

	go ask(`{"to":"anna"}`)
	if out, err = next(t, anna).ReplyStream(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	out.Cancel()
	if _, _, body := read(); !strings.HasSuffix(body, `{"error":{"code":"STREAM_ABORTED","message":"the agent that was asked gave up before its answer was whole"}}`+"\n") {
		t.Errorf("a reply that is given up is %s", body)
	}

	go ask(`{"to":"anna","deadline_ms":50}`)
	if status, _, body := read(); status != 504 || !strings.Contains(body, `"TIMEOUT"`) {
		t.Errorf("without a reply in time it is %d %s", status, body)
	}
}

func TestAReplyMayComeLaterThanTheAnswerToTheRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	names := make(chan string, 1)
	p.takes(func(_ http.ResponseWriter, r *http.Request) { names <- r.Header.Get("Agora-Request-Id") })
	r := s.run(p, delivering)
	anna := s.dial("anna")
	replied := make(chan string, 1)
	go func() {
		m, err := anna.Request(t.Context(), "plain", json.RawMessage(`{"q":1}`))
		if err != nil {
			t.Error(err)
			replied <- ""
			return
		}
		replied <- string(m.Payload)
	}()
	body := `{"to":"anna","request_id":` + strconv.Quote(await.Recv(t, "the request", names)) + `,"payload":{"later": 1.0}}`
	q, err := http.NewRequestWithContext(await.Context(t), http.MethodPost, r.admin+"/reply", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if status, body := s.does(q); status != 202 {
		t.Errorf("a reply is answered %d %s", status, body)
	}
	if got := await.Recv(t, "the reply", replied); !strings.HasSuffix(got, `"later": 1.0}`) {
		t.Errorf("the reply is %s", got)
	}
}
