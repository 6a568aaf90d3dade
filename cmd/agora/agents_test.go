package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/internal/await"
)

func TestAgentsAreFoundOnTheCommandLine(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, stop := context.WithCancel(t.Context())
	bob := c.start(ctx, strings.NewReader(""), "listen", "bob", "--skill", "translate", "--skill", "summarize a text")
	bob.tells("connected")
	r := c.ok("", "agents", "--skill", "translate")
	if !strings.Contains(r.stdout, "ID") || !strings.Contains(r.stdout, "translate, summarize a text") {
		t.Errorf("agents --skill shows %q", r.stdout)
	}
	if r = c.ok("", "agents", "--skill", "cook"); strings.Contains(r.stdout, "bob") {
		t.Errorf("agents --skill cook shows %q", r.stdout)
	}
	r = c.ok("", "agents", "--goal", "please summarize this", "--limit", "1", "--json")
	var l printedAgent
	if err := json.Unmarshal([]byte(r.stdout), &l); err != nil || l.ID != "bob" || len(l.Skills) != 2 || l.Type != "cli" {
		t.Errorf("agents --goal shows %q: %v", r.stdout, err)
	}
	if r = c.ok("", "agent", "bob"); !strings.Contains(r.stdout, "SKILL    translate\n") || !strings.Contains(r.stdout, "DIALECT  agora") {
		t.Errorf("agent shows %q", r.stdout)
	}
	if r = c.ok("", "agent", "bob", "--json"); json.Unmarshal([]byte(r.stdout), &l) != nil || l.Status != "online" {
		t.Errorf("agent --json shows %q", r.stdout)
	}
	for args, want := range map[string]int{
		"agent nobody": exit.NotFound, "agent": exit.Usage, "agents --skill a --goal b": exit.Usage, "agents --limit 2": exit.Usage, "agents --goal ": exit.Usage,
		"listen agora": exit.Error,
	} {
		if r := c.run("", strings.Split(args, " ")...); r.status != want {
			t.Errorf("%s: %+v, want status %d", args, r, want)
		}
	}
	stop()
	bob.wait()
}

func TestAgentsAreFoundOverHTTP(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2")
	at := httpOf(d.public[1])
	var all struct {
		Agents []entryLine
		Next   string
	}
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		resp, text := done(t, r)
		all.Agents, all.Next = nil, ""
		_ = json.Unmarshal([]byte(text), &all)
		return resp.StatusCode, text
	}
	ids := func() string {
		var ids []string
		for _, a := range all.Agents {
			ids = append(ids, a.ID)
		}
		return strings.Join(ids, " ")
	}
	ask("GET", "/agents", "")
	for _, a := range []string{
		`{"id":"a","domain":"law","skills":[{"name":"translate","schema":{ "x":1 }}]}`, `{"id":"b","skills":["cook"]}`,
		`{"id":"find","domain":"law","description":"Cooks, and can translate"}`,
	} {
		alice := connect(t, d.public[0])
		alice.say(`{"type":"agent.register","agent":` + a + `}`)
		alice.hear("agent.registered")
	}
	await.True(t, "the other edge lists all", func() bool { ask("GET", "/agents", ""); return ids() == "a b find" })
	for path, want := range map[string]string{
		"/agents?skill=translate": "a", "/agents?domain=law": "a find", "/agents?domain=law&skill=cook": "", "/agents?dialect=agora&limit=2": "a b",
		"/agents?after=a": "b find",
	} {
		if status, body := ask("GET", path, ""); status != 200 || ids() != want {
			t.Errorf("%s: %d %s, want %q", path, status, body, want)
		}
	}
	if ask("GET", "/agents?limit=1&after=a", ""); ids() != "b" || all.Next != "b" {
		t.Errorf("a page has %q and goes on behind %q, want b", ids(), all.Next)
	}
	for body, want := range map[string]string{`{"skill":"translate"}`: "a", `{"goal":"cook something","limit":1}`: "b", `{"goal":"translate"}`: "a find"} {
		if status, text := ask("POST", "/agents/find", body); status != 200 || ids() != want {
			t.Errorf("%s: %d %s, want %q", body, status, text, want)
		}
	}
	if status, body := ask("GET", "/agents/a", ""); status != 200 || !strings.Contains(body, `"schema":{"x":1}`) {
		t.Errorf("one: %d %s", status, body)
	}
	if status, body := ask("GET", "/agents/find", ""); status != 200 || !strings.Contains(body, `"id":"find"`) {
		t.Errorf("the agent find: %d %s", status, body)
	}
	if status, body := ask("GET", "/agents/a/card", ""); status != 200 || !strings.Contains(body, `"domain":"law"`) {
		t.Errorf("a card: %d %s", status, body)
	}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/agents/nobody/card", "", 404}, {"GET", "/agents/a%00", "", 400}, {"POST", "/agents", "{}", 405}, {"GET", "/agents?limit=0", "", 400},
		{"GET", "/agents?skil=x", "", 400}, {"GET", "/agents?skill=x&skill=y", "", 400}, {"POST", "/agents/find", "{}", 400},
		{"POST", "/agents/find", `{"goal":"x","limits":1}`, 400}, {"POST", "/agents/find", `{"goal":7}`, 400},
		{"POST", "/agents/find", `{"goal":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
	} {
		if status, body := ask(c.method, c.path, c.body); status != c.want || !strings.HasPrefix(body, `{"error":{"code":"`) {
			t.Errorf("%s %s: %d %.100s, want %d", c.method, c.path, status, body, c.want)
		}
	}
}

func TestAnAgentRegistersOverHTTP(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2")
	c := speaking(porttest.Protocols((*http.Protocols).SetHTTP1))
	ask := func(k int, method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(await.Context(t), method, httpOf(d.public[k])+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(all)
	}
	card := `{"domain":"law", "skills":["translate",{"name":"sum","schema":{"x":1}}],"metadata":{"n":1.0}}`
	status, body := ask(0, "PUT", "/agents/clerk?ttl=10m", card)
	var answer struct {
		ID      string
		Expires time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 200 || answer.ID != "clerk" || answer.Expires.IsZero() {
		t.Errorf("PUT: %d %s %v", status, body, err)
	}
	await.True(t, "the other edge shows it", func() bool {
		_, body := ask(1, "GET", "/agents?skill=sum", "")
		return strings.Contains(body, `"id":"clerk","name":"clerk"`) && strings.Contains(body, `"status":"online"`)
	})
	if status, body := ask(1, "GET", "/agents/clerk/card", ""); status != 200 || body != card {
		t.Errorf("its card: %d %s, want the bytes that it registered with", status, body)
	}
	for _, one := range []struct {
		method, path, body string
		want               int
	}{
		{"PUT", "/agents/agora", "{}", 400}, {"PUT", "/agents/a?ttl=1s", "{}", 400}, {"PUT", "/agents/a?ttl=soon", "{}", 400}, {"PUT", "/agents/a", "", 400},
		{"PUT", "/agents/a", `{"id":"b"}`, 400}, {"PUT", "/agents/a", `{"skills":[{"nam":"x"}]}`, 400}, {"PUT", "/agents/a", `{"metadata":7}`, 400},
		{"PUT", "/agents/a", `{"skills":["x","x"]}`, 400}, {"DELETE", "/agents/a", "", 404}, {"DELETE", "/agents/clerk", "", 204}, {"DELETE", "/agents/clerk", "", 404},
	} {
		if status, body := ask(0, one.method, one.path, one.body); status != one.want || status != 204 && !strings.HasPrefix(body, `{"error":{"code":"`) {
			t.Errorf("%s %s %s: %d %s, want %d", one.method, one.path, one.body, status, body, one.want)
		}
	}
	await.True(t, "it is gone", func() bool { status, _ := ask(1, "GET", "/agents/clerk", ""); return status == 404 })
}

// entryLine is what a test reads of an agent over HTTP.
type entryLine struct{ ID, Domain string }

// done sends a request and returns the answer with its body.
func done(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	c := speaking(porttest.Protocols((*http.Protocols).SetHTTP1))
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}
