package main

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/internal/await"
)

// asks begins a request of an agent, and returns its answer to be read.
func asks(t *testing.T, c *http.Client, url, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(await.Context(t), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestAnAgentIsAskedOverHTTPAndItsAnswerStreams(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "3")
	bob := connect(t, d.public[1]+"?agent_id=bob")
	bob.hear("agent.registered")
	for _, speaks := range []*http.Protocols{porttest.Protocols((*http.Protocols).SetHTTP1), porttest.Protocols((*http.Protocols).SetUnencryptedHTTP2)} {
		c := speaking(speaks)
		resp := asks(t, c, httpOf(d.public[0])+"/agents/bob/ask?as=anna", `{"text":"hello","request_id":"r"}`, "Accept: text/event-stream")
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%s: %d %v", resp.Proto, resp.StatusCode, resp.Header)
		}
		bob.hear("message")
		bob.say(`{"type":"reply","to":"anna","stream_id":"s","stream":true,"payload":{"request_id":"r"}}`)
		lines := bufio.NewScanner(resp.Body)
		event := func(want string) {
			t.Helper()
			var got []string
			for lines.Scan() && (lines.Text() != "" || len(got) == 0) {
				if line := lines.Text(); line != "" && line != ":" {
					got = append(got, line)
				}
			}
			if text := strings.Join(got, "|"); text != want {
				t.Fatalf("event %q, want %q", text, want)
			}
		}
		event(`event: start|data: {"request_id":"r"}`)
		bob.say(`{"type":"reply_chunk","to":"anna","stream_id":"s","chunk":"hi"}`) // what is written comes before the rest is said
		event(`event: chunk|data: "hi"`)
		bob.say(`{"type":"reply_end","to":"anna","stream_id":"s"}`)
		event(`event: end|data: null`)
	}
}

func TestAQuestionOverHTTPThatIsAskedAgainIsDoneOnce(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2")
	bob := connect(t, d.public[1]+"?agent_id=bob")
	bob.hear("agent.registered")
	c := speaking(porttest.Protocols((*http.Protocols).SetHTTP1))
	answered := make(chan string, 1)
	go func() {
		r, body := fetchedBy(t, c, httpOf(d.public[0])+"/agents/bob/ask?as=anna", `{"n":1,"request_id":"r"}`, "Idempotency-Key: k")
		answered <- r + body
	}()
	bob.hear("message")
	bob.say(`{"type":"reply","to":"anna","payload":{"request_id":"r","text":"hi"}}`)
	want := "200" + `{"request_id":"r","text":"hi"}` + "\n"
	if got := <-answered; got != want {
		t.Fatalf("the answer is %q, want %q", got, want)
	}
	for k, e := range d.public {
		if status, body := fetchedBy(t, c, httpOf(e)+"/agents/bob/ask?as=anna", `{"n":1,"request_id":"r"}`, "Idempotency-Key: k"); status+body != want {
			t.Errorf("asked again at edge %d: %q, want %q", k, status+body, want)
		}
	}
	for path, want := range map[string]string{
		"/agents/bob/ask?as=anna": "400", "/agents/nobody/ask": "404", "/agents/bob/ask?deadline_ms=x": "400", "/agents/bob/ask?deadline_ms=200": "504",
	} {
		header := "Accept: */*"
		if want == "400" {
			header = "Idempotency-Key: k" // of another request
		}
		if status, body := fetchedBy(t, c, httpOf(d.public[0])+path, `{"n":2}`, header); status != want || !strings.HasPrefix(body, `{"error":{"code":"`) {
			t.Errorf("%s: %s %s, want %s", path, status, body, want)
		}
	}
}

// fetchedBy asks, and returns status and body.
func fetchedBy(t *testing.T, c *http.Client, url, body string, headers ...string) (status, answer string) {
	t.Helper()
	resp := asks(t, c, url, body, headers...)
	var b strings.Builder
	for r := bufio.NewReader(resp.Body); ; {
		line, err := r.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return resp.Status[:3], b.String()
		}
	}
}
