package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/internal/await"
)

// httpOf returns where an edge is asked over HTTP, from where agents connect.
func httpOf(public string) string {
	return "http" + strings.TrimSuffix(strings.TrimPrefix(public, "ws"), "/ws")
}

// fetched asks with a client, and returns status and body.
func fetched(t *testing.T, c *http.Client, method, url, token string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
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

// speaking returns a client that speaks these versions alone, and keeps nothing open.
func speaking(p *http.Protocols) *http.Client {
	return &http.Client{Transport: &http.Transport{Protocols: p, DisableKeepAlives: true}}
}

func TestAgentsAreListedOverHTTP(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "3")
	alice, bob := connect(t, d.public[0]+"?agent_id=alice"), connect(t, d.public[1]+"?agent_id=a%2Fb+c")
	alice.hear("agent.registered")
	bob.hear("agent.registered")
	for _, speaks := range []*http.Protocols{porttest.Protocols((*http.Protocols).SetHTTP1), porttest.Protocols((*http.Protocols).SetUnencryptedHTTP2)} {
		c := speaking(speaks)
		var list struct{ Agents []struct{ ID, Name string } }
		r, body := fetched(t, c, "GET", httpOf(d.public[2])+"/agents", "")
		if err := json.Unmarshal([]byte(body), &list); err != nil || r.StatusCode != 200 || len(list.Agents) != 2 || list.Agents[0].ID != "a/b c" || list.Agents[1].ID != "alice" {
			t.Errorf("%s: %d %s, want both agents", r.Proto, r.StatusCode, body)
		}
		if r, body := fetched(t, c, "GET", httpOf(d.public[2])+"/agents/a%2Fb%20c", ""); r.StatusCode != 200 || !strings.Contains(body, `"id":"a/b c"`) {
			t.Errorf("one of them: %d %s", r.StatusCode, body)
		}
		r, body = fetched(t, c, "GET", httpOf(d.public[2])+"/agents/carol", "")
		if want := `{"error":{"code":"AGENT_NOT_FOUND","message":"Agent 'carol' does not exist"}}` + "\n"; r.StatusCode != 404 || body != want {
			t.Errorf("nobody: %d %s, want 404 %s", r.StatusCode, body, want)
		}
		if r, body := fetched(t, c, "GET", httpOf(d.public[0])+"/ws", ""); r.StatusCode != 426 || (r.ProtoMajor == 2) != strings.Contains(body, "over HTTP/1.1 alone") {
			t.Errorf("/ws without an upgrade over %s: %d %s", r.Proto, r.StatusCode, body)
		}
		if r, body := fetched(t, c, "GET", httpOf(d.public[0])+"/", ""); r.StatusCode != 200 || !strings.HasPrefix(body, "This is an edge of Agora") {
			t.Errorf("/: %d %s", r.StatusCode, body)
		}
	}
}

func TestARequestOverHTTPIsHeldAgainstCredentialsAndRules(t *testing.T) {
	t.Parallel()
	rules := t.TempDir() + "/policy"
	if err := os.WriteFile(rules, []byte("rules:\n  - {name: most, who: {names: [joe]}, agents: [joe], directory: true}\n  - {name: blind, who: {names: [jane]}, agents: [jane]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := startFort(t, "--policy", rules)
	joe, blind := f.signed(t, "joe", "id-7", time.Now().Add(time.Hour)), f.jane
	one := &http.Client{Transport: &http.Transport{TLSClientConfig: porttest.Trusting(t, f.certs.CA), DisableKeepAlives: true, Protocols: porttest.Protocols((*http.Protocols).SetHTTP1)}}
	two := &http.Client{Transport: &http.Transport{TLSClientConfig: porttest.Trusting(t, f.certs.CA), Protocols: porttest.Protocols((*http.Protocols).SetHTTP2)}}
	own := &http.Client{Transport: &http.Transport{TLSClientConfig: porttest.Trusting(t, f.certs.CA, f.certs.ClientCert, f.certs.ClientKey), DisableKeepAlives: true}}
	t.Cleanup(two.CloseIdleConnections)
	url := "https://" + f.host + "/agents"
	for _, c := range []struct {
		about  string
		client *http.Client
		token  string
		want   int
	}{
		{"a good token", one, joe, 200}, {"the same again", two, joe, 200}, {"no token", two, "", 401}, {"a bad one", one, "guess", 401},
		{"a certificate that no rule is for", own, "", 403}, {"a token that may not see the directory", two, blind, 403},
	} {
		r, body := fetched(t, c.client, "GET", url, c.token)
		if r.StatusCode != c.want || c.want != 200 && !strings.HasPrefix(body, `{"error":{"code":"`) {
			t.Errorf("%s: %d %s, want %d", c.about, r.StatusCode, body, c.want)
		}
	}
	if err := os.WriteFile(f.list, []byte("jti id-7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the token is taken back", func() bool {
		r, _ := fetched(t, two, "GET", url, joe)
		return r.StatusCode == 401
	})
	f.leaksNothing(t, joe, blind)
}

// curl 7.88 takes the reset of a stream behind its answer for a failure of the answer.
func TestCurlIsToldThatABodyIsTooLarge(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	for _, version := range []string{"--http1.1", "--http2-prior-knowledge"} {
		cmd := exec.CommandContext(await.Context(t), "curl", "-sS", version, "--data-binary", "@-", httpOf(d.public[0])+"/agents/bob/ask")
		cmd.Stdin = strings.NewReader(strings.Repeat("x", 3<<20))
		out, err := cmd.CombinedOutput()
		if want := `{"error":{"code":"MESSAGE_TOO_LARGE",`; err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("curl %s: %v, %s", version, err, out)
		}
	}
}

func TestAPathThatMayMeanTwoThingsIsRefusedAsEverythingIs(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	resp := asks(t, speaking(porttest.Protocols((*http.Protocols).SetHTTP1)), httpOf(d.public[0])+"/agents//ask", `{}`)
	body, err := io.ReadAll(resp.Body)
	if want := `{"error":{"code":"INVALID_REQUEST",`; err != nil || resp.StatusCode != 400 || !strings.HasPrefix(string(body), want) {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
}
