package main

import (
	"io"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/await"
)

// talking is `agora listen` with somebody who types.
type talking struct {
	*cliRun
	c    *verbs
	feed *io.PipeWriter
}

func (c *verbs) talk(id string) *talking {
	c.t.Helper()
	in, feed := io.Pipe()
	c.t.Cleanup(func() { feed.Close() })
	l := &talking{c.start(c.t.Context(), in, "listen", id), c, feed}
	l.tells("connected as " + id)
	return l
}

// types types a line, and waits until stderr tells what became of it.
func (l *talking) types(line, told string) {
	l.t.Helper()
	io.WriteString(l.feed, line+"\n")
	l.tells(told)
}

func (l *talking) shows(what string) {
	l.t.Helper()
	await.True(l.t, "it shows "+what, func() bool { return strings.Contains(l.out.String(), what) })
}

func TestALineThatIsTypedAnswersWhoeverWaits(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	bob := c.talk("bob")
	bob.types("anybody?", "nobody has written yet")
	carol := c.talk("carol")
	carol.types("@bob hi", "sent to bob")
	bob.shows("carol: hi")
	ask := c.start(t.Context(), nil, "ask", "--from", "alice", "--to", "bob", "--timeout", "10m", "what is the time?")
	bob.shows("what is the time?")
	bob.types("noon", "answered alice") // who has asked comes before who has only written
	if r := ask.wait(); r.status != 0 || r.stdout != "noon\n" {
		t.Fatalf("ask: %+v, want noon", r)
	}
	bob.types("well", "several have written (carol, alice); begin the line with @ID")
	bob.types("@carol hello", "sent to carol")
	carol.shows("bob: hello")
	carol.types("hello yourself", "* sent to bob\n* sent to bob")
	bob.types("@dave hello", "AGENT_NOT_FOUND")
	bob.types("@", "want @ID TEXT")
	bob.types(`@"carol" x`, "* sent to carol\n* not sent")
}

func TestSeveralWhoWaitAreToldApart(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	bob := c.talk("bob")
	one := c.start(t.Context(), nil, "ask", "--from", "alice", "--to", "bob", "--timeout", "10m", "first?")
	bob.shows("first?")
	two := c.start(t.Context(), nil, "ask", "--from", "carol", "--to", "bob", "--timeout", "10m", "second?")
	bob.shows("second?")
	bob.types("which?", "several wait for an answer (alice, carol)")
	bob.types("@carol 2", "answered carol")
	bob.types("1", "answered alice")
	if a, b := one.wait().stdout, two.wait().stdout; a != "1\n" || b != "2\n" {
		t.Errorf("alice got %q, carol %q", a, b)
	}
}

func TestAVerbBesideAListenerOfItsAgentSaysWhatToDo(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.talk("bob")
	for _, args := range [][]string{{"send", "--to", "x", "--from", "bob", "x"}, {"listen", "bob"}, {"publish", "lobby", "--as", "bob", "x"}} {
		r := c.run("", args...)
		if r.status != exit.Error || !strings.Contains(r.stderr, "AGENT_EXISTS") || !strings.Contains(r.stderr, "at the prompt of") {
			t.Errorf("%q: %+v, want AGENT_EXISTS and what to do", args, r)
		}
	}
}

func TestAListenerNeedsAnID(t *testing.T) {
	t.Parallel()
	if status, said := ran(t, "listen", ""); status != exit.Usage || !strings.Contains(said, "ID is empty") {
		t.Errorf("agora listen '' ended with %d: %s", status, said)
	}
}
