package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/await"
)

func TestAnAgentInShellAnswers(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, stop := context.WithCancel(t.Context())
	var all []*cliRun
	for id, command := range map[string][]string{
		"upper": {"tr", "a-z", "A-Z"}, "bad": {"sh", "-c", "printf part; exit 3"}, "silent": {"sh", "-c", "exit 4"}, "who": {"sh", "-c", `echo "$AGENT_ID $REQUEST_FROM [$REDELIVERED]"`},
		"nothing": {"true"}, "twice": {"sh", "-c", "read line; printf 'first '; read other || true; printf \"%s\" \"$line\""},
	} {
		all = append(all, c.start(ctx, nil, append([]string{"serve", id, "--"}, command...)...))
		c.present(id)
	}
	for _, one := range []struct {
		to, text, stdout, stderr string
		status                   int
	}{
		{"upper", "hello", "HELLO\n", "", 0},
		{"upper", "$(echo it is no command) `true`", "$(ECHO IT IS NO COMMAND) `TRUE`\n", "", 0},
		{"bad", "x", "part", "bad answered: the agent's command ended with status 3", exit.Aborted},
		{"silent", "x", "", "silent answered: the agent's command ended with status 4", exit.Aborted},
		{"who", "x", "who alice []\n", "", 0},
		{"nothing", "x", "\n", "", 0},
		{"twice", "once", "first once\n", "", 0},
	} {
		r := c.run("", "ask", "--from", "alice", "--to", one.to, "--", one.text)
		if r.status != one.status || !strings.HasPrefix(r.stdout, one.stdout) || !strings.Contains(r.stderr, one.stderr) {
			t.Errorf("%s: %+v, want %+v", one.to, r, one)
		}
	}
	stop()
	for _, r := range all {
		if r := r.wait(); r.status != 0 || strings.Contains(r.stderr, "context canceled") {
			t.Errorf("serve: %+v", r)
		}
	}
	for args, want := range map[string]int{"serve x": exit.Usage, "serve x y": exit.Usage, "serve x --concurrency 0 -- true": exit.Usage, "serve x -- /no/such": exit.Usage} {
		if r := c.run("", strings.Fields(args)...); r.status != want {
			t.Errorf("%s: %+v, want status %d", args, r, want)
		}
	}
}

// What a command had not ended for comes again to the next one; what it had does not.
func TestAnAgentInShellAcknowledgesWhatItHasDone(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	gate := filepath.Join(t.TempDir(), "gate")
	command := []string{"serve", "bob", "--concurrency", "2", "--", "sh", "-c", `read text; echo "begun $text [$REDELIVERED]"; case $text in wait) cat "` + gate + `";; esac; echo "done $text"`}
	fifo(t, gate)
	ctx, stop := context.WithCancel(t.Context())
	first := c.start(ctx, nil, command...)
	c.present("bob")
	c.ok("", "send", "--from", "alice", "--to", "bob", "one")
	await.True(t, "the first message", func() bool { return strings.Contains(first.out.String(), "done one") })
	c.ok("", "send", "--from", "alice", "--to", "bob", "wait")
	c.ok("", "send", "--from", "alice", "--to", "bob", "beside")
	await.True(t, "two at a time", func() bool {
		return strings.Contains(first.out.String(), "begun wait []") && strings.Contains(first.out.String(), "done beside")
	})
	stop()
	if r := first.wait(); r.status != 0 || strings.Contains(r.stdout, "done wait") {
		t.Errorf("serve: %+v", r)
	}
	ctx, stop = context.WithCancel(t.Context())
	again := c.start(ctx, nil, command...)
	await.True(t, "the message that was not done", func() bool { return strings.Contains(again.out.String(), "begun wait [1]") })
	if strings.Contains(again.out.String(), "done one") {
		t.Errorf("what was done comes again: %s", &again.out)
	}
	stop()
	again.wait()
}

func TestACallerWhoGivesUpHasTheCommandKilled(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	gate := filepath.Join(t.TempDir(), "gate")
	fifo(t, gate)
	ctx, stop := context.WithCancel(t.Context())
	serve := c.start(ctx, nil, "serve", "bob", "--", "sh", "-c", `printf begun; exec cat "`+gate+`"`)
	c.present("bob")
	asking, interrupt := context.WithCancel(t.Context())
	ask := c.start(asking, nil, "ask", "--to", "bob", "x")
	await.True(t, "the answer begins", func() bool { return ask.out.String() == "begun" })
	interrupt()
	if r := ask.wait(); r.status != exit.Aborted || strings.Contains(r.stderr, "context canceled") {
		t.Errorf("ask: %+v", r)
	}
	await.True(t, "it is told", func() bool { return strings.Contains(serve.err.String(), "waits no longer") })
	stop()
	serve.wait()
}
