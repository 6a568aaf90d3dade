package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
)

// What agents of other dialects say last may stand in the end of a stream.
func TestWhatTheEndOfAStreamSaysIsShown(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	bob, err := client.Dial(await.Context(t), client.Config{URLs: []string{c.cluster.URL(0)}, Agent: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	t.Cleanup(func() {
		stop()
		serving.Wait()
		bob.Close()
	})
	serving.Go(func() {
		for m, err := range bob.Messages(ctx) {
			if err == nil {
				err = answersInStream(ctx, m)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for asked, want := range map[string]string{
		`{"end":"!"}`: "one two!\n", `{"end":{"a":1}}`: "one two\n{\"a\":1}\n", `{"end":{"text":"three"}}`: "one two\nthree\n", `{}`: "one two\n",
	} {
		if r := c.ok("", "ask", "--from", "alice", "--to", "bob", "--payload", asked); r.stdout != want {
			t.Errorf("of %s it prints %q, want %q", asked, r.stdout, want)
		}
	}
	r := c.ok("", "ask", "--from", "alice", "--to", "bob", "--payload", `{"end":"!"}`, "--json")
	if lines := strings.Split(strings.TrimSpace(r.stdout), "\n"); !strings.Contains(lines[len(lines)-1], `"payload":"!"`) {
		t.Errorf("as JSON it ends with %s", lines[len(lines)-1])
	}
}

// answersInStream answers by a stream that ends with what was asked for.
func answersInStream(ctx context.Context, m *client.Message) error {
	var asked struct{ End json.RawMessage }
	if err := json.Unmarshal(m.Payload, &asked); err != nil {
		return err
	}
	s, err := m.ReplyStream(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s, "one two"); err != nil {
		return err
	}
	if asked.End == nil {
		return s.Close()
	}
	return s.CloseWith(asked.End)
}
