package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/await"
)

// sayings are the verbs that take a text or JSON of their caller's, as they are called up to that.
var sayings = map[string]string{
	"agora send":    "send --from alice --to bob",
	"agora ask":     "ask --from alice --to bob",
	"agora reply":   "reply --from alice --to bob --request-id r",
	"agora publish": "publish lobby --as alice",
	"agora execute": "execute --from alice --to worker",
	"agora call":    "call --to bob tool",
	"agora handoff": "handoff --to bob POST /x",
}

// TestTextOfOthersNamesNoFile holds that what stands in the command line is said as it stands there, by every verb that
// says something.
func TestTextOfOthersNamesNoFile(t *testing.T) {
	t.Parallel()
	c := newIATCLI(t)
	heard := c.hearsAll()
	secret := file(t, `{"secret":"what only this user may read"}`)
	for path, use := range usesOf(newRoot()) {
		asJSON := strings.Contains(use, "JSON")
		if !asJSON && !strings.Contains(use, "TEXT") || strings.Contains(use, "< TEXT") {
			continue
		}
		call, known := sayings[path]
		if !known {
			t.Errorf("%s takes what its caller says: have it here", path)
			continue
		}
		for _, text := range [][]string{{"@" + secret}, {"@@" + secret}, {"@bob hello"}, {"--", "@" + secret}, {"--", "-"}} {
			args := append(strings.Fields(call), text...)
			said := text[len(text)-1]
			r := c.run(`{"stdin":"is not read"}`, args...)
			switch {
			case asJSON && (r.status != exit.Usage || len(heard) > 0):
				t.Errorf("%v: %+v, want wrong usage", args, r)
			case !asJSON && r.status != 0:
				t.Errorf("%v: %+v", args, r)
			case !asJSON:
				if got := await.Recv(t, "what is said", heard); got != said {
					t.Errorf("%v says %q", args, got)
				}
			}
		}
		for _, args := range [][]string{{"--file", secret}, {"--file", "-"}, {"-"}} {
			if r := c.run(`{"secret":"what only this user may read"}`, append(strings.Fields(call), args...)...); r.status == exit.Usage {
				t.Errorf("%s %v: %+v", call, args, r)
			} else if got := await.Recv(t, "what is said", heard); !strings.Contains(got, "what only this user may read") {
				t.Errorf("%s %v says %q", call, args, got)
			}
		}
		if r := c.run("", append(strings.Fields(call), "x", "--file", secret)...); r.status != exit.Usage {
			t.Errorf("%s with text and --file: %+v, want wrong usage", call, r)
		}
	}
}

// usesOf returns how each command is used, by its path.
func usesOf(cmd *cobra.Command) map[string]string {
	all := map[string]string{cmd.CommandPath(): cmd.Use}
	for _, sub := range cmd.Commands() {
		for path, use := range usesOf(sub) {
			all[path] = use
		}
	}
	return all
}

// hearsAll has bob, a worker and a member of lobby hear everything, and answer; it returns the texts that come to them.
func (c *verbs) hearsAll() <-chan string {
	c.t.Helper()
	heard := make(chan string, 16)
	bob, err := client.Dial(await.Context(c.t), client.Config{URLs: []string{c.cluster.URL(0)}, Agent: "bob"})
	if err != nil {
		c.t.Fatal(err)
	}
	lobby, err := bob.Join(await.Context(c.t), "lobby")
	if err != nil {
		c.t.Fatal(err)
	}
	worker, err := iat.NewAgent(iat.Config{URLs: []string{c.cluster.HTTP(1)}, Agent: "worker"})
	if err != nil {
		c.t.Fatal(err)
	}
	worker.OnExecute(func(_ context.Context, t *iat.Task) (any, error) {
		heard <- t.Query
		return "done", nil
	})
	ctx, stop := context.WithCancel(c.t.Context())
	var hearing sync.WaitGroup
	c.t.Cleanup(func() {
		stop()
		hearing.Wait()
		worker.Close()
		bob.Close()
	})
	hearing.Go(func() { _ = worker.Serve(ctx) })
	hearing.Go(func() {
		for e, err := range lobby.Events(ctx) {
			if err == nil && e.Roster == nil {
				heard <- textIn(e.Data)
			}
		}
	})
	hearing.Go(func() {
		for m, err := range bob.Messages(ctx) {
			if err != nil {
				return
			}
			heard <- textIn(m.Payload)
			if m.RequestID() != "" && !m.IsReply {
				_ = m.Reply(ctx, map[string]string{"text": "heard"}) // who asks sees what is missing
			}
		}
	})
	c.present("bob", "worker")
	return heard
}

// textIn returns the text of a payload, or all of one that has none.
func textIn(payload []byte) string {
	var said struct{ Text *string }
	if json.Unmarshal(payload, &said) == nil && said.Text != nil {
		return *said.Text
	}
	return string(payload)
}
