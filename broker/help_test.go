package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

const patience = 30 * time.Second

func testServer(t testing.TB, nodes int) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := Embed(ctx, ServerConfig{Nodes: nodes, Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("Embed: %v", err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func testBroker(t testing.TB, s *Server, change func(*Config)) *Broker {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cfg := Config{URL: s.URL(), Name: t.Name(), Audit: time.Second, ShardBytes: 64 << 20}
	if change != nil {
		change(&cfg)
	}
	b, err := Connect(ctx, cfg)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(b.Close)
	return b
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until polls a condition.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting until %s", what)
		}
		<-tick.C
	}
}

// put puts a message and waits for its result.
func put(t testing.TB, l *Lane, m agora.Message) Result {
	t.Helper()
	c := make(chan Result, 1)
	l.Put(m, func(r Result) { c <- r })
	select {
	case r := <-c:
		return r
	case <-time.After(patience):
		t.Fatalf("no result for %v", m)
		return Result{}
	}
}

// store puts a message that must be stored.
func store(t testing.TB, l *Lane, m agora.Message) uint64 {
	t.Helper()
	r := put(t, l, m)
	if r.Err != nil || r.Again || r.Seq == 0 {
		t.Fatalf("Put(%+v) = %+v, want it stored", m, r)
	}
	return r.Seq
}

func wantCode(t testing.TB, r Result, want agora.Code) {
	t.Helper()
	e, ok := errors.AsType[*agora.Error](r.Err)
	if !ok || e.Code != want {
		t.Fatalf("result = %+v, want code %s", r, want)
	}
}

func text(s string) agora.Message { return agora.Message{Body: []byte(s)} }

func part(p agora.Part, stream, body string) agora.Message {
	return agora.Message{Part: p, Stream: stream, Body: []byte(body)}
}

func indexed(p agora.Part, stream string, index uint32) agora.Message {
	return agora.Message{Part: p, Stream: stream, Indexed: true, Index: index, Body: fmt.Appendf(nil, "%d", index)}
}

// listener reads an inbox as an edge would.
type listener struct {
	*Inbox
	woken chan struct{}
}

func listen(t testing.TB, b *Broker, to agora.Address, from From) *listener {
	l := &listener{woken: make(chan struct{}, 1)}
	l.Inbox = b.Listen(to, from, func() { signal(l.woken) })
	t.Cleanup(l.Close)
	return l
}

// next returns the next messages, waiting for them.
func (l *listener) next(t testing.TB) []agora.Message {
	t.Helper()
	end := time.After(patience)
	for {
		msgs, err := l.Next(context.Background(), 64<<10)
		if len(msgs) > 0 {
			return msgs
		}
		again := time.After(time.Hour)
		if err != nil {
			again = time.After(10 * time.Millisecond)
		}
		select {
		case <-l.woken:
		case <-again:
		case <-end:
			t.Fatal("no message")
		}
	}
}

// read returns at least n messages.
func (l *listener) read(t testing.TB, n int) []agora.Message {
	t.Helper()
	var all []agora.Message
	for len(all) < n {
		all = append(all, l.next(t)...)
	}
	return all
}

// quiet reads until there is nothing, and returns what there was.
func (l *listener) quiet(t testing.TB) []agora.Message {
	t.Helper()
	var all []agora.Message
	for {
		msgs, err := l.Next(testContext(t), 64<<10)
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		if len(msgs) == 0 {
			return all
		}
		all = append(all, msgs...)
	}
}

func bodies(msgs []agora.Message) []string {
	var all []string
	for _, m := range msgs {
		if m.Kind == agora.Gap {
			all = append(all, "gap")
		} else {
			all = append(all, string(m.Body))
		}
	}
	return all
}
