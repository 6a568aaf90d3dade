package broker

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/await"
)

// publish stores messages in bob's mailbox, each in a record of its own, and returns the positions.
func publish(t testing.TB, b *Broker, session string, names ...string) []uint64 {
	t.Helper()
	l := b.Lane(LaneConfig{From: "alice", Session: session, Epoch: 1, To: bob, Used: true})
	defer l.Close()
	var at []uint64
	for _, s := range names {
		at = append(at, store(t, l, text(s)))
	}
	return at
}

func names(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestASlowInboxFallsBehindAndMissesNothing(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.InboxBytes = 4 << 10 })
	slow, fast := listen(t, b, bob, From{}), listen(t, b, bob, From{})
	slow.quiet(t)
	fast.quiet(t)
	if len(b.dispatch.m) != 1 {
		t.Errorf("%d subscriptions for one address", len(b.dispatch.m))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := bodies(fast.read(t, 300)); !slices.Equal(got, names(0, 300)) {
			t.Errorf("fast got %v", got)
		}
	})
	publish(t, b, "s1", names(0, 300)...)
	wg.Wait()
	await.True(t, "the slow one is behind", func() bool { slow.mu.Lock(); defer slow.mu.Unlock(); return slow.state.lags() })
	if got := bodies(slow.read(t, 300)); !slices.Equal(got, names(0, 300)) {
		t.Errorf("slow got %v", got)
	}
	publish(t, b, "s2", "live")
	if got := bodies(slow.next(t)); !slices.Equal(got, []string{"live"}) {
		t.Errorf("then got %v", got)
	}
	slow.quiet(t)
	if slow.live.bytes != 0 || len(slow.live.queue) != 0 {
		t.Errorf("%d bytes in %d records are left", slow.live.bytes, len(slow.live.queue))
	}
}

func TestAListenerResumesWhileMessagesArrive(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, func(c *Config) { c.InboxBytes = 2 << 10 })
	const n = 1000
	var wg sync.WaitGroup
	wg.Go(func() {
		l := a.Lane(lane("s1", 1, false))
		defer l.Close()
		for i := range n {
			l.Put(text(fmt.Sprint(i)), func(Result) {})
			if i%10 == 0 {
				if err := l.Flush(await.Context(t)); err != nil {
					t.Errorf("Flush: %v", err)
				}
			}
		}
		if err := l.Flush(await.Context(t)); err != nil {
			t.Errorf("Flush: %v", err)
		}
	})
	r := rand.New(rand.NewPCG(1, 2))
	var got []agora.Message
	var after uint64
	for len(got) < n {
		in := listen(t, []*Broker{a, b}[r.IntN(2)], bob, From{After: after})
		for range r.IntN(4) + 1 {
			if len(got) == n {
				break
			}
			msgs := in.next(t)
			got = append(got, msgs[:1+r.IntN(len(msgs))]...) // the rest is lost with the socket
			after = got[len(got)-1].Seq
			if len(msgs) > 1 {
				break
			}
		}
		in.Close()
	}
	wg.Wait()
	if !slices.Equal(bodies(got), names(0, n)) {
		t.Fatalf("got %v", bodies(got))
	}
}

func TestAnInboxBeginsAtATime(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	publish(t, b, "s1", "before")
	m, err := b.log.Last(t.Context(), jslog.Locate(bob, 1).Stream, jslog.Locate(bob, 1).Log())
	if err != nil {
		t.Fatal(err)
	}
	since := m.At.Add(time.Nanosecond)
	empty := listen(t, b, bob, From{Time: since})
	if got := empty.quiet(t); len(got) != 0 {
		t.Fatalf("got %v", bodies(got))
	}
	publish(t, b, "s2", "after")
	for _, in := range []*listener{empty, listen(t, b, bob, From{Time: since})} {
		if got := bodies(in.next(t)); !slices.Equal(got, []string{"after"}) {
			t.Errorf("got %v", got)
		}
	}
	if got := bodies(listen(t, b, bob, From{Time: time.Now().Add(-time.Hour)}).quiet(t)); !slices.Equal(got, []string{"gap", "before", "after"}) {
		t.Errorf("from before the retention: %v", got)
	}
}

func TestAnAuditFindsASilentTail(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.Audit = 100 * time.Millisecond })
	in := listen(t, b, bob, From{})
	in.quiet(t)
	_, before := in.Tail()
	await.True(t, "an audit confirms the tail", func() bool { _, at := in.Tail(); return at.After(before) })
	top := b.dispatch.m[jslog.Locate(bob, 1).Live]
	if err := top.nats.Unsubscribe(); err != nil { // what is handed on now is lost
		t.Fatal(err)
	}
	at := publish(t, b, "s1", "lost", "too")
	if got := bodies(in.read(t, 2)); !slices.Equal(got, []string{"lost", "too"}) {
		t.Errorf("got %v", got)
	}
	await.True(t, "an audit says that it repaired", func() bool { return b.Stats().Repaired > 0 }) // it counts behind what it brings
	in.quiet(t)
	if seq, _ := in.Tail(); seq != at[1] {
		t.Errorf("tail %d, want %d", seq, at[1])
	}
}

func TestARecordDroppedOnItsWayIsReadFromTheLog(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	in := listen(t, b, bob, From{})
	in.quiet(t)
	at := publish(t, b, "s1", "1")
	in.next(t)
	in.push(nats.NewMsg("x"), at[0]>>8+9, at[0]>>8+7) // two have been missed
	publish(t, b, "s2", "2")
	if got := bodies(in.next(t)); !slices.Equal(got, []string{"2"}) {
		t.Errorf("got %v", got)
	}
	b.onError(nil, b.dispatch.m[jslog.Locate(bob, 1).Live].nats, nats.ErrSlowConsumer)
	in.mu.Lock()
	behind := in.state.lags()
	in.mu.Unlock()
	if !behind {
		t.Error("a slow consumer's inboxes must read the log")
	}
}

func TestAnUnknownVersionIsSkipped(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	publish(t, b, "s1", "1")
	if _, err := b.js.Publish(t.Context(), jslog.Locate(bob, 1).Log(), []byte{99, 1, 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.Publish(t.Context(), jslog.Locate(bob, 1).Log(), []byte{1, 7}); err != nil {
		t.Fatal(err)
	}
	publish(t, b, "s2", "2")
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %v", got)
	}
}

// What an edge makes of records of a version that came after it: docs/operations.md, Upgrading, tells operators.
func TestARecordOfALaterVersionIsLostToAnOlderEdge(t *testing.T) {
	t.Parallel()
	var log warnings
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	old := b.Lane(lane("s1", 1, false))
	defer old.Close()
	numbered := func(n uint64, p agora.Part) agora.Message {
		return agora.Message{N: n, Part: p, Stream: "s", Body: fmt.Append(nil, n)}
	}
	store(t, old, numbered(1, agora.Start))
	old.Close()
	later := record.Of(record.Origin{Session: "s1", Epoch: 1, ValidAt: b.Now().UnixMilli(), From: "alice"}, numbered(2, agora.Chunk), numbered(3, agora.Chunk))
	later[0] = 255 // a version that nobody knows yet
	if _, err := b.js.Publish(t.Context(), jslog.Locate(bob, 1).Log(), later); err != nil {
		t.Fatal(err)
	}
	heir := b.Lane(lane("s1", 2, true))
	defer heir.Close()
	store(t, heir, numbered(2, agora.Chunk)) // stored a second time: the lane can't see the first
	store(t, heir, numbered(4, agora.End))

	got := listen(t, b, bob, From{}).quiet(t)
	if want := []string{"1", "2", "4"}; !slices.Equal(bodies(got), want) {
		t.Errorf("got %v, want %v: nothing of the later version", bodies(got), want)
	}
	for _, m := range got {
		if m.Kind == agora.Gap || m.Again {
			t.Errorf("got %+v: an older edge can't tell what it does not see", m)
		}
	}
	if !strings.Contains(log.String(), "record skipped") {
		t.Errorf("the log says %q, not that a record was skipped", log.String())
	}
}

func TestNoWakeAfterClose(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	for range 50 {
		var mu sync.Mutex
		closed := false
		in := b.Listen(bob, From{}, func() {
			mu.Lock()
			defer mu.Unlock()
			if closed {
				t.Error("woken after Close")
			}
		})
		in.Close()
		mu.Lock()
		closed = true
		mu.Unlock()
		in.Close()
	}
	if len(b.dispatch.m) != 0 || b.Stats().Inboxes != 0 {
		t.Errorf("%d subscriptions, %d inboxes left", len(b.dispatch.m), b.Stats().Inboxes)
	}
}

func TestNextFailsWhileTheLogIsAwayAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	a, b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() }), testBroker(t, s, nil)
	in := listen(t, a, bob, From{})
	in.quiet(t)
	c.Cut()
	await.True(t, "the connection is lost", func() bool { return !a.Connected() })
	in.markLagging()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := in.Next(ctx, 1<<10); err == nil {
		t.Error("Next read a log that is away")
	}
	publish(t, b, "s1", "1", "2")
	c.Reset()
	if got := bodies(in.read(t, 2)); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %v", got)
	}
}
