package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// verbs runs the program against a cluster of its own.
type verbs struct {
	t       *testing.T
	url     string
	cluster *agoratest.Cluster
}

func newCLI(t *testing.T) *verbs {
	t.Helper()
	c := &verbs{t: t, cluster: agoratest.Start(t, agoratest.Options{Edges: 2, Grace: time.Hour, Node: edge.Config{Heartbeat: time.Minute}})}
	c.url = c.cluster.URL(0) + "," + c.cluster.URL(1)
	return c
}

// cliResult is what a run of the program left.
type cliResult struct {
	status         int
	stdout, stderr string
}

// run runs the program to its end.
func (c *verbs) run(stdin string, args ...string) cliResult {
	c.t.Helper()
	return c.start(c.t.Context(), strings.NewReader(stdin), args...).wait()
}

// cliRun is a program that runs.
type cliRun struct {
	t        *testing.T
	out, err output
	done     chan int
}

// start runs the program beside the test.
func (c *verbs) start(ctx context.Context, stdin io.Reader, args ...string) *cliRun {
	c.t.Helper()
	r := &cliRun{t: c.t, done: make(chan int, 1)}
	end := slices.Index(args, "--") // what stands behind it is no flag
	if end < 0 {
		end = len(args)
	}
	args = slices.Insert(slices.Clone(args), end, "--url", c.url)
	var wg sync.WaitGroup
	wg.Go(func() { r.done <- run(ctx, args, stdin, &r.out, &r.err) })
	c.t.Cleanup(wg.Wait)
	return r
}

func (r *cliRun) wait() cliResult {
	r.t.Helper()
	if !await.Within(await.Long, func() bool { return len(r.done) > 0 }) {
		r.t.Fatalf("it does not end; stdout %q, stderr %q", r.out.String(), r.err.String())
	}
	return cliResult{<-r.done, r.out.String(), r.err.String()}
}

// present waits until agents are there.
func (c *verbs) present(ids ...string) {
	c.t.Helper()
	for _, id := range ids {
		await.True(c.t, id+"'s presence", func() bool {
			return strings.Contains(c.run("", "agents", "--json").stdout, `"id":"`+id+`"`)
		})
	}
}

func TestListenPrintsMessagesForPeople(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	listen := c.start(t.Context(), nil, "listen", "alice", "--count", "3")
	c.present("alice")
	for _, args := range [][]string{
		{"send", "--from", "bob", "--to", "alice", "Hello there"},
		{"send", "--from", "bob", "--to", "alice", "--payload", `{"action": "x"}`},
	} {
		if r := c.run("", args...); r != (cliResult{}) {
			t.Fatalf("send: %+v", r)
		}
	}
	if r := c.run("one\ntwo", "stream", "--from", "bob", "--to", "alice"); r != (cliResult{}) {
		t.Fatalf("stream: %+v", r)
	}
	want := "bob: Hello there\nbob: {\"action\": \"x\"}\nbob: one\n    two\n"
	if r := listen.wait(); r.status != 0 || r.stdout != want {
		t.Fatalf("listen: %+v, want %q", r, want)
	}
}

func TestRawStreamIsByteForByteThroughADrain(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	listen := c.start(t.Context(), nil, "listen", "alice", "--raw", "--count", "1")
	c.present("alice")
	var text strings.Builder
	for i := range 3000 {
		text.WriteString(strings.Repeat("é😀", i%7) + " \r\n\t\x00\"\\ ")
	}
	in, feed := io.Pipe()
	stream := c.start(t.Context(), in, "stream", "--to", "alice")
	for i, rest := 0, text.String(); len(rest) > 0; i++ {
		n := min(len(rest), 101) // cuts characters
		if _, err := io.WriteString(feed, rest[:n]); err != nil {
			t.Fatal(err)
		}
		if rest = rest[n:]; i == 100 {
			c.cluster.AddEdge()
			c.cluster.StopEdge(0)
		}
	}
	feed.Close()
	if r := stream.wait(); r.status != 0 {
		t.Fatalf("stream: %+v", r)
	}
	if r := listen.wait(); r.status != 0 || r.stdout != text.String() {
		t.Fatalf("listen: status %d, %d bytes, want %d; %s", r.status, len(r.stdout), text.Len(), r.stderr)
	}
}

func TestListenTellsOfAStreamThatBreaks(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	listen := c.start(t.Context(), nil, "listen", "alice", "--raw", "--count", "1")
	c.present("alice")
	ctx, interrupt := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	defer feed.Close()
	stream := c.start(ctx, in, "stream", "--to", "alice")
	io.WriteString(feed, "the beginning")
	await.True(t, "the beginning", func() bool { return listen.out.String() == "the beginning" })
	interrupt()
	if r := stream.wait(); r.status != exit.Aborted {
		t.Fatalf("stream: %+v, want status %d", r, exit.Aborted)
	}
	if r := listen.wait(); r.status != exit.Aborted || !strings.Contains(r.stderr, "cancelled") {
		t.Fatalf("listen: %+v, want status %d", r, exit.Aborted)
	}
}

func TestListenEndsWellOnInterruptAndOnTime(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, interrupt := context.WithCancel(t.Context())
	listen := c.start(ctx, nil, "listen", "alice")
	c.present("alice")
	interrupt()
	if r := listen.wait(); r.status != 0 || r.stdout != "" {
		t.Fatalf("listen: %+v", r)
	}
	for wait := 300 * time.Millisecond; ; wait *= 4 { // a busy machine may take that long to connect
		endless, counted := c.run("", "listen", "bob", "--timeout", wait.String()), c.run("", "listen", "carol", "--timeout", wait.String(), "--count", "1")
		if endless.status == 0 && counted.status == exit.Aborted {
			break
		}
		if wait > await.Long {
			t.Fatalf("listen: %+v, want a good end, and %+v, want status %d", endless, counted, exit.Aborted)
		}
	}
}

func TestAskPrintsTheReply(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for _, streamed := range []bool{false, true} {
		listen := c.start(t.Context(), nil, "listen", "bob", "--json", "--count", "1")
		c.present("bob")
		ask := c.start(t.Context(), nil, "ask", "--from", "alice", "--to", "bob", "What time?")
		r := listen.wait()
		var line printedMessage
		if err := json.Unmarshal([]byte(r.stdout), &line); err != nil || line.From != "alice" || line.RequestID == "" {
			t.Fatalf("listen: %+v, %v", r, err)
		}
		args := []string{"reply", "--from", "bob", "--to", "alice", "--request-id", line.RequestID}
		stdin := "Noon"
		if streamed {
			args = append(args, "--stream")
		} else {
			args = append(args, "-")
		}
		if r := c.run(stdin, args...); r != (cliResult{}) {
			t.Fatalf("reply: %+v", r)
		}
		if r := ask.wait(); r.status != 0 || r.stdout != "Noon\n" {
			t.Fatalf("ask: %+v, want Noon", r)
		}
	}
}

func TestJSONLinesOfAStream(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	listen := c.start(t.Context(), nil, "listen", "alice", "--json", "--count", "1")
	c.present("alice")
	r := c.run("text", "stream", "--from", "bob", "--to", "alice", "--json", "--payload", `{"title":"t"}`)
	var receipt printedReceipt
	if err := json.Unmarshal([]byte(r.stdout), &receipt); err != nil || receipt.Status != "stored" || receipt.StreamID == "" {
		t.Fatalf("stream: %+v, %v", r, err)
	}
	var types []string
	for line := range strings.Lines(listen.wait().stdout) {
		var l printedMessage
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.From != "bob" || l.StreamID != receipt.StreamID {
			t.Fatalf("line %s: %v", line, err)
		}
		types = append(types, l.Type)
	}
	if got := strings.Join(types, " "); got != "message chunk end" {
		t.Fatalf("lines %s", got)
	}
}

func TestJoinShowsWhatHappensAndPublishesLines(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	in, feed := io.Pipe()
	defer feed.Close()
	join := c.start(t.Context(), in, "join", "general", "--as", "alice", "--count", "3")
	await.True(t, "the space", func() bool { return strings.Contains(c.run("", "spaces", "--json").stdout, "general") })
	if r := c.run("", "publish", "general", "--as", "bob", "Hello everyone"); r != (cliResult{}) {
		t.Fatalf("publish: %+v", r)
	}
	shown := func(what string) {
		t.Helper()
		await.True(t, what, func() bool { return strings.Contains(join.out.String(), what) })
	}
	shown("bob left")
	if r := c.run("as it comes", "publish", "general", "--as", "carol", "--stream"); r != (cliResult{}) {
		t.Fatalf("publish: %+v", r)
	}
	shown("carol left")
	shown("as it comes")
	io.WriteString(feed, "a line\n")
	want := "* bob joined\nbob: Hello everyone\n* bob left\n* carol joined\ncarol: as it comes\n* carol left\nalice: a line\n"
	r := join.wait()
	// A stream is read beside the events, so that the news of who has left may be shown before its text.
	got := strings.Replace(r.stdout, "* carol left\ncarol: as it comes\n", "carol: as it comes\n* carol left\n", 1)
	if r.status != 0 || got != want {
		t.Fatalf("join: %+v, want %q", r, want)
	}
}

func TestExitStatusesOfTheVerbs(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	file := filepath.Join(t.TempDir(), "latin1")
	if err := os.WriteFile(file, []byte{0xe9}, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args []string
		want int
	}{
		{[]string{"agents"}, 0},
		{[]string{"send"}, exit.Usage},
		{[]string{"send", "--to", "a"}, exit.Usage},
		{[]string{"send", "--to", "a", "x", "y"}, exit.Usage},
		{[]string{"send", "--to", "a", "--payload", "{"}, exit.Usage},
		{[]string{"send", "--to", "a", "--file", file}, exit.Usage},
		{[]string{"send", "--bogus"}, exit.Usage},
		{[]string{"listen"}, exit.Usage},
		{[]string{"send", "--to", "nobody", "x"}, exit.NotFound},
		{[]string{"stream", "--to", "nobody"}, exit.NotFound},
		{[]string{"publish", "agent.status", "x"}, exit.Forbidden},
		{[]string{"ask", "--from", "me", "--to", "me", "x", "--timeout", "300ms"}, exit.Aborted},
		{[]string{"join", "No Space"}, exit.Error},
	}
	for _, tc := range cases {
		if r := c.run("", tc.args...); r.status != tc.want {
			t.Errorf("%q: %+v, want status %d", tc.args, r, tc.want)
		} else if tc.want != 0 && !strings.Contains("\n"+r.stderr, "\nagora: ") {
			t.Errorf("%q says %q", tc.args, r.stderr)
		}
	}
	c.url = "ws://127.0.0.1:1"
	if r := c.run("", "agents"); r.status != exit.Unavailable {
		t.Errorf("agents without a cluster: %+v, want status %d", r, exit.Unavailable)
	}
}

func TestHelpTellsTheExitStatuses(t *testing.T) {
	var out, errs bytes.Buffer
	if status := run(t.Context(), []string{"send", "--help"}, nil, &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	if !strings.Contains(out.String(), exit.Help) {
		t.Fatalf("help is %s", out.String())
	}
}

func TestColourNeedsATerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if terminal.Colourful(f) || terminal.Colourful(&bytes.Buffer{}) {
		t.Fatal("a file is taken for a terminal")
	}
}
