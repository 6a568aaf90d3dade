package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/await"
)

// greeter answers handoffs by their path: /whole by what was asked, /parts by a stream, /wait never.
func greeter(t *testing.T, c *verbs) (cancelled <-chan struct{}) {
	t.Helper()
	bob, err := client.Dial(await.Context(t), client.Config{
		URLs: []string{c.cluster.URL(0)}, Agent: "bob", Card: client.Card{Skills: []agora.Skill{{Name: "greet", Description: "Says hello"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	told := make(chan struct{}, 1)
	var serving sync.WaitGroup
	t.Cleanup(func() {
		stop()
		serving.Wait()
		bob.Close()
	})
	serving.Go(func() {
		for m, err := range bob.Messages(ctx) {
			if err == nil {
				err = greets(ctx, m, told)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	return told
}

func greets(ctx context.Context, m *client.Message, told chan<- struct{}) error {
	var asked struct {
		Path   string
		Params json.RawMessage
	}
	if err := json.Unmarshal(m.Payload, &asked); err != nil {
		return err
	}
	switch asked.Path {
	case "/whole/{a}":
		return m.Reply(ctx, m.Payload)
	case "/text":
		return m.Reply(ctx, map[string]string{"text": "hello"})
	}
	s, err := m.ReplyStream(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s, "one two"); err != nil {
		return err
	}
	if asked.Path == "/parts" {
		return s.CloseWith(json.RawMessage(`{"n": 2.0}`))
	}
	if await.Within(await.Long, func() bool {
		_, err := io.WriteString(s, ".")
		return errors.Is(err, client.ErrCancelled)
	}) {
		told <- struct{}{}
	}
	return nil
}

func TestWorkIsHandedOffOnTheCommandLine(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	cancelled := greeter(t, c)
	c.present("bob")
	for _, args := range [][]string{{"find", "--skill", "greet"}, {"find", "says", "hello", "to", "somebody"}} {
		if r := c.ok("", args...); !strings.Contains(r.stdout, "bob") || !strings.Contains(r.stdout, "greet") {
			t.Errorf("%v shows %q", args, r.stdout)
		}
	}
	if r := c.ok("", "card", "bob"); !strings.HasPrefix(r.stdout, `{"id":"bob",`) || !strings.Contains(r.stdout, `"skills":[{"name":"greet","description":"Says hello"}]`) {
		t.Errorf("card shows %q", r.stdout)
	}
	r := c.ok(`{"x": 1.0}`, "handoff", "--to", "bob", "post", "/whole/{a}", "-", "--param", "a=b=c", "--param", "d=")
	if want := `"method":"POST","path":"/whole/{a}","params":{"a":"b=c","d":""},"input_data":{"x": 1.0}}` + "\n"; !strings.HasSuffix(r.stdout, want) {
		t.Errorf("handoff shows %q, want %s", r.stdout, want)
	}
	if r = c.ok("", "handoff", "--to", "bob", "GET", "/parts"); r.stdout != "one two\n{\"n\": 2.0}\n" {
		t.Errorf("handoff shows %q", r.stdout)
	}
	if r = c.ok("", "handoff", "--to", "bob", "GET", "/text"); r.stdout != "hello\n" {
		t.Errorf("handoff shows %q", r.stdout)
	}
	if r = c.ok("", "handoff", "--to", "bob", "GET", "/text", "--raw"); !strings.HasSuffix(r.stdout, `"text":"hello"}`) {
		t.Errorf("handoff --raw shows %q", r.stdout)
	}
	r = c.ok("", "handoff", "--to", "bob", "GET", "/parts", "--json")
	if lines := strings.Split(strings.TrimSpace(r.stdout), "\n"); !strings.HasPrefix(lines[0], `{"type":"chunk","from":"bob","body":"one`) ||
		lines[len(lines)-1] != `{"type":"result","from":"bob","code":200,"body":{"n":2.0}}` {
		t.Errorf("handoff --json shows %q", r.stdout)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	wait := c.start(ctx, nil, "handoff", "--to", "bob", "GET", "/wait")
	await.True(t, "the answer begins", func() bool { return strings.HasPrefix(wait.out.String(), "one two") })
	interrupt()
	if r = wait.wait(); r.status != exit.Aborted {
		t.Errorf("handoff without an end: %+v, want status %d", r, exit.Aborted)
	}
	await.Recv(t, "the agent is told that nobody waits", cancelled)
	for args, want := range map[string]int{
		"card nobody": exit.NotFound, "card": exit.Usage, "find": exit.Usage, "find --skill a b": exit.Usage, "find x --limit -1": exit.Usage,
		"handoff --to nobody GET /": exit.NotFound, "handoff GET /": exit.Usage, "handoff --to bob GET": exit.Usage, "handoff --to bob GET x": exit.Usage,
		"handoff --to bob GET / {": exit.Usage, "handoff --to bob GET / --param a": exit.Usage, "handoff --to bob GET / --param a=1 --param a=2": exit.Usage,
		"handoff --to bob G-T /": exit.Error,
	} {
		if r := c.run("", strings.Split(args, " ")...); r.status != want || r.stderr == "" {
			t.Errorf("%s: %+v, want status %d", args, r, want)
		}
	}
}
