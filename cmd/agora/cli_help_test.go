package main

import (
	"bytes"
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/await"
)

// flagNamed is a flag where the help begins to tell of it.
var flagNamed = regexp.MustCompile(`(?m)^ +(?:-., )?--([a-z0-9.-]+)`)

// A word in back quotes would stand in the help where the kind of the value is to.
func TestNoFlagNamesItsKindByAWordOfItsHelp(t *testing.T) {
	t.Parallel()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, m := range flagNamed.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
			if f := cmd.Flags().Lookup(m[1]); f == nil || strings.Contains(f.Usage, "`") {
				t.Errorf("%s --%s has back quotes", cmd.CommandPath(), m[1])
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}

func TestHelpAboutNothingFails(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{
		"help": 0, "help listen": 0, "help dev kill": 0, "help nothere": exit.Usage, "help listen nothere": exit.Usage, "help mailbox nothere": exit.Usage, "nothere": exit.Usage,
	} {
		var out bytes.Buffer
		if status := run(t.Context(), strings.Fields(args), nil, &out, &out); status != want || out.Len() == 0 {
			t.Errorf("agora %s ends with %d: %s; want %d", args, status, &out, want)
		}
	}
}

// A text of several words that was not quoted is several arguments.
func TestSeveralWordsAreToldToBeQuoted(t *testing.T) {
	t.Parallel()
	for path, call := range sayings {
		var out bytes.Buffer
		if status := run(t.Context(), append(strings.Fields(call), "one", "two"), nil, &out, &out); status != exit.Usage || !strings.Contains(out.String(), "put it into quotes") {
			t.Errorf("%s one two ends with %d: %s", path, status, &out)
		}
	}
}

func TestAnAddressThatIsNoEdgesIsExplained(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	c := &verbs{t: t, url: strings.TrimSuffix(strings.TrimPrefix(d.public[0], "ws://"), "/ws")} // HOST:PORT alone
	for _, args := range [][]string{{"agents"}, {"tools"}, {"approvals"}} {
		c.ok("", args...)
	}
	c.url = d.admin[0]
	for _, args := range [][]string{{"send", "--to", "bob", "x"}, {"listen", "bob", "--wait"}, {"agents"}, {"tools"}, {"call", "--to", "bob", "x"}, {"join", "lobby"}, {"execute", "--to", "bob", "x"}} {
		if r := c.run("", args...); r.status != exit.NotFound || !strings.Contains(r.stderr, "admin port") || strings.Contains(r.stderr, "trying again") {
			t.Errorf("%v at the admin port: %+v", args, r)
		}
	}
}

// TestVerbsThatGoOnWaitForTheCluster holds that what is started before the cluster is there is there with it.
func TestVerbsThatGoOnWaitForTheCluster(t *testing.T) {
	t.Parallel()
	first := blockOfPorts(t)
	c := &verbs{t: t, url: "ws://127.0.0.1:" + strconv.Itoa(first)}
	ctx, stop := context.WithCancel(t.Context())
	var waiting []*cliRun
	for _, args := range [][]string{{"listen", "bob", "--wait"}, {"join", "lobby", "--as", "carol", "--wait"}} {
		r := c.start(ctx, strings.NewReader(""), args...)
		await.True(t, "it waits", func() bool { return strings.Contains(r.err.String(), "trying again") })
		waiting = append(waiting, r)
	}
	if r := c.run("", "listen", "dave"); r.status != exit.Unavailable { // no terminal, and not asked to
		t.Errorf("listen: %+v, want status %d", r, exit.Unavailable)
	}
	startDev(t, "--addr", "127.0.0.1:"+strconv.Itoa(first))
	for _, r := range waiting {
		await.True(t, "it is connected", func() bool { return strings.Contains(r.err.String(), "* connected as") })
	}
	stop()
	for _, r := range waiting {
		if r := r.wait(); r.status != 0 || strings.Contains(r.stderr, "context canceled") {
			t.Errorf("it ends with %+v", r)
		}
	}
	ctx, stop = context.WithCancel(t.Context())
	c.url = "ws://127.0.0.1:1"
	r := c.start(ctx, strings.NewReader(""), "listen", "bob", "--wait")
	await.True(t, "it waits", func() bool { return strings.Contains(r.err.String(), "trying again") })
	stop()
	if r := r.wait(); r.status != 0 || strings.Contains(r.stderr, "context canceled") {
		t.Errorf("it ends with %+v", r)
	}
}

// TestAnInterruptIsToldInWords holds that no verb which is interrupted says so in the words of a library.
func TestAnInterruptIsToldInWords(t *testing.T) {
	t.Parallel()
	arguments := map[string]string{ // of those that would fail for want of them
		"agora listen": "bob", "agora serve": "bob -- true", "agora send": "--to bob x", "agora stream": "--to bob", "agora ask": "--to bob x", "agora reply": "--to bob --request-id r x",
		"agora join": "lobby", "agora publish": "lobby x", "agora agent": "bob", "agora find": "x", "agora card": "bob", "agora handoff": "--to bob GET /", "agora execute": "--to bob x",
		"agora call": "--to bob x", "agora approve": "x", "agora deny": "x", "agora space create": "lobby", "agora why": "x", "agora kick": "bob", "agora mailbox purge": "bob",
		"agora inspect agent": "bob", "agora inspect space": "lobby", "agora inspect edge": "e", "agora link": "x:1", "agora unlink": "x:1", "agora dev kill": "1", "agora dev start": "1",
		"agora sidecar": "--agent-url http://127.0.0.1:1 --p2p-addr none", "agora inbox": "--as bob", "agora mcp": "--as bob", "agora mcp join": "--url http://127.0.0.1:1/",
		"agora dev": "--addr 256.0.0.1:1", "agora edge": "--auth none --addr 256.0.0.1:1", "agora token": "x",
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for path := range usesOf(newRoot()) {
		var out output
		args := append(strings.Fields(path)[1:], strings.Fields(arguments[path])...)
		if strings.HasPrefix(path, "agora bench") {
			args = append(args, "--help")
		}
		run(ctx, args, strings.NewReader(""), &out, &out)
		if text := out.String(); strings.Contains(text, "context canceled") {
			t.Errorf("%s, interrupted, says %s", path, text)
		}
	}
}
