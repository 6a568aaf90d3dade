package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// hastyCLI is a CLI whose edges ask at once whether what they wrote has arrived.
func hastyCLI(t *testing.T) *verbs {
	t.Helper()
	c := &verbs{t: t, cluster: agoratest.Start(t, agoratest.Options{Grace: time.Hour, Node: edge.Config{Heartbeat: time.Minute, Confirm: 2 * time.Millisecond}})}
	c.url = c.cluster.URL(0)
	return c
}

// ok runs a verb that must succeed.
func (c *verbs) ok(stdin string, args ...string) cliResult {
	c.t.Helper()
	r := c.run(stdin, args...)
	if r.status != 0 {
		c.t.Fatalf("%q: %+v", args, r)
	}
	return r
}

func TestNoVerbSwallowsTheMailOfItsAgent(t *testing.T) {
	t.Parallel()
	c := hastyCLI(t)
	c.ok("", "publish", "lobby", "--as", "alice", "here I am") // who has never been has no mailbox
	answers, answer := io.Pipe()
	defer answer.Close()
	bob := c.start(t.Context(), answers, "listen", "bob", "--json")
	c.present("bob")
	shown := func(what string, n int) {
		t.Helper()
		await.True(t, "bob is shown "+what, func() bool { return strings.Count(bob.out.String(), what) == n })
	}
	const rounds = 5
	for k := range rounds {
		c.ok("", "send", "--from", "carol", "--to", "alice", fmt.Sprint("letter ", k))
		ask := c.start(t.Context(), nil, "ask", "--from", "alice", "--to", "bob", "--timeout", "10m", "well?")
		shown("well?", k+1)
		io.WriteString(answer, "@alice well\n")
		if r := ask.wait(); r.stdout != "well\n" {
			t.Fatalf("ask: %+v", r)
		}
		in, feed := io.Pipe()
		stream := c.start(t.Context(), in, "stream", "--from", "alice", "--to", "bob")
		io.WriteString(feed, "slow")
		shown(`"slow"`, k+1)
		feed.Close()
		stream.wait()
		c.ok("", "send", "--from", "alice", "--to", "bob", "hello")
		c.ok("", "publish", "lobby", "--as", "alice", "hello")
		c.ok("", "reply", "--from", "alice", "--to", "carol", "hello")
	}
	if got := letters(t, c.ok("", "listen", "alice", "--json", "--count", fmt.Sprint(2*rounds)).stdout); len(got) != rounds {
		t.Errorf("alice is left %q of carol, want %d letters", got, rounds)
	}
}

// letters returns what carol has sent, of what a verb has shown as JSON.
func letters(t *testing.T, shown string) (all []string) {
	t.Helper()
	for line := range strings.Lines(shown) {
		var m printedMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.From == "carol" && m.Type == "message" {
			all = append(all, string(m.Payload))
		}
	}
	return all
}

func TestJoinShowsTheMailOfItsAgent(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for _, asJSON := range []bool{false, true} {
		in, feed := io.Pipe()
		args := []string{"join", "general", "--as", "alice", "--count", "1"}
		if asJSON {
			args = append(args, "--json")
		}
		join := c.start(t.Context(), in, args...)
		await.True(t, "alice is there", func() bool { return strings.Contains(join.err.String(), "connected") })
		c.ok("", "send", "--from", "carol", "--to", "alice", "one\ntwo")
		c.ok("streamed", "stream", "--from", "carol", "--to", "alice")
		await.True(t, "all of it is shown", func() bool {
			out := join.out.String()
			return strings.Contains(out, "streamed") && strings.Contains(out, "two")
		})
		io.WriteString(feed, "done\n")
		r := join.wait()
		feed.Close()
		if asJSON && len(letters(t, r.stdout)) != 2 {
			t.Errorf("join: %+v, want carol's messages", r)
		}
		if want := "carol (to you): one\n    two\ncarol (to you): streamed\nalice: done\n"; !asJSON && r.stdout != want {
			t.Errorf("join: %+v, want %q", r, want)
		}
		if left := c.run("", "listen", "alice", "--timeout", "300ms"); left.stdout != "" {
			t.Errorf("what join has shown is shown again: %+v", left)
		}
	}
}
