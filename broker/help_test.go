package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/pause"
)

func testServer(t testing.TB, nodes int) *natsd.Server {
	t.Helper()
	return testServerOf(t, natsd.Config{Nodes: nodes})
}

func testServerOf(t testing.TB, cfg natsd.Config) *natsd.Server {
	t.Helper()
	cfg.Dir = cmp.Or(cfg.Dir, t.TempDir())
	s, err := natsd.Embed(await.Context(t), cfg)
	if err != nil {
		t.Fatalf("Embed: %v", err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

// testBroker connects to the servers as an edge that waits long for them, and whose inboxes live by what is handed on: none is
// compared with the log unless something has happened.
func testBroker(t testing.TB, s *natsd.Server, change func(*Config)) *Broker {
	t.Helper()
	cfg := Config{
		URL: s.URL(), Name: t.Name(), ShardBytes: 64 << 20, Audit: time.Hour, mature: time.Hour,
		GiveUp: time.Minute, Election: time.Minute,
	}
	if !strings.Contains(s.URL(), ",") { // of a cluster one that has no leader does not answer
		cfg.read, cfg.tail = time.Minute, time.Minute
	}
	if change != nil {
		change(&cfg)
	}
	b, err := Connect(await.Context(t), cfg)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(b.Close)
	return b
}

// put puts a message and waits for its result.
func put(t testing.TB, l *Lane, m agora.Message) Result {
	t.Helper()
	c := make(chan Result, 1)
	l.Put(m, func(r Result) { c <- r })
	return await.Recv(t, fmt.Sprintf("the result of %+v", m), c)
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

func numbered(n uint64, m agora.Message) agora.Message { m.N = n; return m }
func ided(id string, m agora.Message) agora.Message    { m.ID = id; return m }

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
	return l.read(t, 1)
}

// read returns at least n messages.
func (l *listener) read(t testing.TB, n int) (all []agora.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Long)
	defer cancel()
	for len(all) < n {
		msgs, err := l.Next(ctx, 64<<10)
		all = append(all, msgs...)
		if len(msgs) > 0 {
			continue
		}
		var again <-chan time.Time
		if err != nil {
			again = time.After(10 * time.Millisecond)
		}
		select {
		case <-l.woken:
		case <-again:
		case <-ctx.Done():
			t.Fatalf("waited %v in vain: got %v, want %d messages", await.Long, bodies(all), n)
		}
	}
	return all
}

// quiet reads until there is nothing, and returns what there was.
func (l *listener) quiet(t testing.TB) []agora.Message {
	t.Helper()
	ctx := await.Context(t)
	var all []agora.Message
	for {
		msgs, err := l.Next(ctx, 64<<10)
		if err != nil && !pause.For(ctx, 10*time.Millisecond) {
			t.Fatalf("Next: %v", err)
		}
		if err == nil && len(msgs) == 0 {
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
