package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/internal/await"
)

func TestSpaceCreateMakesASpace(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--spaces.auto-create=false")
	c := &verbs{t: t, url: d.public[0]}
	if r := c.run("", "publish", "lobby", "hello"); r.status != exit.NotFound {
		t.Errorf("publish into what there is not: %+v, want status %d", r, exit.NotFound)
	}
	if r := c.ok("", "space", "create", "lobby"); r.stdout != "" {
		t.Errorf("space create: %+v", r)
	}
	c.ok("", "publish", "lobby", "hello")
	var l printedReceipt
	r := c.ok("", "space", "create", "lobby", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &l); err != nil || l != (printedReceipt{Status: "created", Space: "lobby"}) {
		t.Errorf("space create --json: %+v, %v", r, err)
	}
	for args, status := range map[string]int{"space create agent.status": exit.Forbidden, "space create": exit.Usage, "space create NO": exit.Error} {
		if r := c.run("", strings.Fields(args)...); r.status != status {
			t.Errorf("agora %s: %+v, want status %d", args, r, status)
		}
	}
}

// tokensOf runs a cluster whose tokens are for those agents, and returns what speaks to it, and the tokens.
func tokensOf(t *testing.T, agents ...[]string) (*verbs, []string) {
	t.Helper()
	var tokens, lines []string
	for k, ids := range agents {
		token, line, err := auth.NewToken(auth.Line{Name: string(rune('a' + k)), Agents: ids})
		if err != nil {
			t.Fatal(err)
		}
		tokens, lines = append(tokens, token), append(lines, line)
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return &verbs{t: t, url: startDev(t, "--auth", "file:"+path).public[0]}, tokens
}

func TestATokenForOneAgentNeedsNoFrom(t *testing.T) {
	t.Parallel()
	c, tokens := tokensOf(t, []string{"Jane Doe, é"}, []string{"bob"}, []string{"svc-*"})
	bob := c.start(t.Context(), strings.NewReader(""), "listen", "bob", "--count", "1", "--token", tokens[1])
	bob.tells("connected as bob")
	c.ok("", "send", "--to", "bob", "hello", "--token", tokens[0])
	if r := bob.wait(); r.stdout != "\"Jane Doe, é\": hello\n" {
		t.Errorf("bob is shown %+v, want it to be from Jane Doe", r)
	}
	if r := c.run("", "send", "--to", "bob", "hello", "--token", tokens[2]); r.status != exit.Forbidden || !strings.Contains(r.stderr, "(--from)") {
		t.Errorf("with a token for many: %+v, want status %d and the flag that helps", r, exit.Forbidden)
	}
	c.ok("", "send", "--to", "bob", "hello", "--token", tokens[2], "--from", "svc-1")
}

// complete returns what a shell is offered for the last of the words.
func (c *verbs) complete(args ...string) string {
	c.t.Helper()
	line := append([]string{"__complete", args[0], "--url", c.url}, args[1:]...)
	status, out := ran(c.t, line...)
	if status != 0 {
		c.t.Fatalf("%q ended with %d: %s", line, status, out)
	}
	return out
}

func TestShellsCompleteAgentsAndSpaces(t *testing.T) {
	c := newCLI(t)
	for _, id := range []string{"bob", "$(reboot)"} {
		c.start(t.Context(), strings.NewReader(""), "listen", id).tells("connected")
	}
	c.start(t.Context(), strings.NewReader(""), "join", "lobby", "--as", "carol").tells("connected")
	await.True(t, "the space is there", func() bool { return strings.Contains(c.run("", "spaces").stdout, "lobby") })
	for _, args := range [][]string{{"send", "--to", ""}, {"stream", "--to", "b"}, {"ask", "--to", ""}, {"reply", "--to", ""}} {
		if got := c.complete(args...); !strings.HasPrefix(got, "bob\n") || strings.Contains(got, "reboot") {
			t.Errorf("%q is completed by %s", args, got)
		}
	}
	for _, args := range [][]string{{"join", ""}, {"publish", "lo"}} {
		if got := c.complete(args...); !strings.Contains(got, "lobby\n") {
			t.Errorf("%q is completed by %s", args, got)
		}
	}
	for _, args := range [][]string{{"publish", "lobby", ""}, {"listen", ""}} {
		if got := c.complete(args...); !strings.HasPrefix(got, ":4\n") {
			t.Errorf("%q is completed by %s, want nothing", args, got)
		}
	}
	t.Setenv("AGORA_URL", c.url)
	for args, want := range map[string]string{"kick ": "bob", "mailbox purge ": "bob", "inspect agent b": "bob", "inspect space ": "lobby"} {
		if _, got := ran(t, append([]string{"__complete"}, strings.Split(args, " ")...)...); !strings.Contains(got, want+"\n") {
			t.Errorf("agora %s is completed by %s", args, got)
		}
	}
	c.url = "ws://127.0.0.1:1"
	if got := c.complete("send", "--to", ""); !strings.HasPrefix(got, ":4\n") || strings.Contains(got, "UNAVAILABLE") {
		t.Errorf("without a cluster it is completed by %s, want nothing", got)
	}
}

func TestListsAndJSONActOnNoTerminal(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	a := connect(t, c.cluster.URL(0))
	a.say(`{"type":"register","id":"a","name":"x\u001b[2J\tb\nalice  2026","endpoint":"\u202e\u009b"}`)
	a.hear("registered")
	r := c.ok("", "agents")
	want := `x\x1b[2J\tb\nalice  2026`
	if strings.Count(r.stdout, "\n") != 2 || !strings.Contains(r.stdout, want) || !strings.Contains(r.stdout, `\u202e\u009b`) {
		t.Errorf("agents shows %q, want %q in it, and two lines", r.stdout, want)
	}
	r = c.ok("", "agents", "--json")
	var l printedAgent
	if err := json.Unmarshal([]byte(r.stdout), &l); err != nil || l.Endpoint != "\u202e\u009b" || strings.ContainsAny(r.stdout, "\u202e\u009b") {
		t.Errorf("agents --json shows %q: %+v, %v", r.stdout, l, err)
	}
	listen := c.start(t.Context(), strings.NewReader(""), "listen", "bob", "--json", "--count", "1")
	listen.tells("connected")
	c.ok("", "send", "--to", "bob", "--payload", `{"text":"\u009b\u2066"}`)
	var m printedMessage
	var body struct{ Text string }
	if err := errors.Join(json.Unmarshal([]byte(listen.wait().stdout), &m), json.Unmarshal(m.Payload, &body)); err != nil || body.Text != "\u009b\u2066" {
		t.Errorf("listen --json shows %q, %v", listen.out.String(), err)
	}
	if strings.ContainsFunc(strings.TrimSpace(listen.out.String()), terminal.Harmful) {
		t.Errorf("listen --json shows %q", listen.out.String())
	}
}
