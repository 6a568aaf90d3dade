package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
)

func TestALaneWithoutALeaseRefusesAndAbortsWhenItHasOne(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	var ok atomic.Bool
	ok.Store(true)
	cfg := lane("s1", 1, false)
	cfg.Valid = func() (time.Time, bool) { return time.Now(), ok.Load() }
	l := b.Lane(cfg)
	defer l.Close()
	store(t, l, part(agora.Start, "s", "start"))
	store(t, l, part(agora.Start, "t", "other"))
	ok.Store(false)
	wantCode(t, put(t, l, part(agora.Chunk, "s", "lost")), agora.Unavailable)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := l.Flush(ctx); err == nil {
		t.Error("a lane that owes an abort handed over cleanly")
	}
	ok.Store(true)
	wantCode(t, put(t, l, part(agora.Chunk, "s", "late")), agora.StreamAborted)
	store(t, l, part(agora.Chunk, "t", "on"))
	if err := l.Flush(await.Context(t)); err != nil {
		t.Errorf("Flush: %v", err)
	}
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"start", "other", "STREAM_ABORTED", "on"}) {
		t.Errorf("got %v", got)
	}
}

func TestAFullShardRefusesAndEvictsNobody(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.ShardBytes = 256 << 10 })
	carol, dave := agora.ToAgent("default", "carol"), agora.ToAgent("default", "dave")
	kept := b.Lane(LaneConfig{From: "alice", Session: "s2", Epoch: 1, To: carol})
	defer kept.Close()
	store(t, kept, text("kept"))
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	store(t, l, part(agora.Start, "s", "start"))
	flood := b.Lane(LaneConfig{From: "alice", Session: "s3", Epoch: 1, To: dave})
	defer flood.Close()
	for _, size := range []int{50 << 10, 1 << 10, 1} {
		var r Result
		for r.Err == nil {
			r = put(t, flood, text(string(make([]byte, size))))
		}
		wantCode(t, r, agora.Unavailable)
		if e := agora.AsError(r.Err); e.RetryAfter == 0 {
			t.Errorf("no time to try again: %+v", e)
		}
	}
	wantCode(t, put(t, l, part(agora.Chunk, "s", "x")), agora.Unavailable)
	wantCode(t, put(t, l, part(agora.Chunk, "s", "x")), agora.Unavailable)
	if got := bodies(listen(t, b, carol, From{}).quiet(t)); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("carol has %v", got)
	}
	stream, err := b.js.Stream(t.Context(), jslog.Locate(bob, 1).Stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(jslog.Locate(dave, 1).Log())); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(await.Context(t)); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	wantCode(t, put(t, l, part(agora.Chunk, "s", "x")), agora.StreamAborted)
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"start", "STREAM_ABORTED"}) {
		t.Errorf("bob has %v", got)
	}
	store(t, l, text("room again"))
}

func TestALaneGathersOnlySoMuch(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL, cfg.LaneBytes = c.Addr(), 4<<10 })
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	store(t, l, numbered(1, part(agora.Start, "s", "0")))
	c.Cut()
	await.True(t, "the connection is lost", func() bool { return !b.Connected() })
	var mu sync.Mutex
	var results []Result
	for n := range 20 {
		l.Put(numbered(uint64(n+2), part(agora.Chunk, "s", string(make([]byte, 512)))), func(r Result) {
			mu.Lock()
			defer mu.Unlock()
			results = append(results, r)
		})
	}
	c.Reset()
	await.True(t, "all are answered", func() bool { mu.Lock(); defer mu.Unlock(); return len(results) == 20 })
	stored := 0
	for i, r := range results {
		if r.Err == nil && i == stored {
			stored++
		} else if r.Err == nil {
			t.Errorf("part %d stored over a hole", i)
		}
	}
	if stored < 2 || stored > 10 {
		t.Errorf("%d of 20 stored", stored)
	}
	wantCode(t, results[19], agora.Unavailable)
	await.True(t, "the stream is aborted", func() bool { n, err := b.Unread(t.Context(), bob, 0); return err == nil && n >= 3 })
	got := listen(t, b, bob, From{}).quiet(t)
	if m := got[len(got)-1]; m.Part != agora.Abort || len(got) != stored+2 {
		t.Errorf("%d messages, the last %+v; want %d and an abort", len(got), m, stored+1)
	}
}

func TestALaneThatCantReachTheLogRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	c, b, l := testCabled(t)
	store(t, l, part(agora.Start, "s", "1"))
	c.Cut()
	await.True(t, "the connection is lost", func() bool { return !b.Connected() })
	results := make(chan Result, 8)
	l.Put(part(agora.Chunk, "s", "2"), func(r Result) { results <- r })
	l.Put(text("3"), func(r Result) { results <- r })
	l.mu.Lock()
	l.startRecovery(false)
	l.mu.Unlock()
	l.suspend(jslog.ErrSilent)
	wantCode(t, await.Recv(t, "an answer", results), agora.Unavailable)
	wantCode(t, await.Recv(t, "an answer", results), agora.Unavailable)
	wantCode(t, put(t, l, part(agora.Chunk, "s", "4")), agora.Unavailable)
	c.Reset()
	if err := l.Flush(await.Context(t)); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	store(t, l, text("5"))
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"1", "STREAM_ABORTED", "5"}) {
		t.Errorf("got %v", got)
	}
}

func TestAPartTooLargeIsRefusedAndEndsItsStream(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServerOf(t, natsd.Config{MaxPayload: 256 << 10}), nil)
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	wantCode(t, put(t, l, text(string(make([]byte, b.MaxRecord())))), agora.MessageTooLarge)
	store(t, l, text(string(make([]byte, b.MaxRecord()-1024))))
	store(t, l, part(agora.Start, "s", ""))
	wantCode(t, put(t, l, part(agora.Chunk, "s", string(make([]byte, b.MaxRecord())))), agora.MessageTooLarge)
	wantCode(t, put(t, l, part(agora.Chunk, "s", "on")), agora.StreamAborted)
	got := listen(t, b, bob, From{}).read(t, 3)
	if got[2].Part != agora.Abort {
		t.Errorf("got %+v", got[2])
	}
}

func TestEndLaneAbortsOnceFromTwoEdges(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	l := a.Lane(lane("s1", 1, false))
	for _, name := range []string{"one", "two", "done"} {
		store(t, l, part(agora.Start, name, name))
	}
	store(t, l, part(agora.End, "done", "end"))
	var wg sync.WaitGroup
	for _, edge := range []*Broker{a, b, a, b} {
		wg.Go(func() {
			if err := edge.EndLane(await.Context(t), lane("s1", 2, true)); err != nil {
				t.Errorf("EndLane: %v", err)
			}
		})
	}
	wg.Wait()
	wantCode(t, put(t, l, part(agora.Chunk, "one", "late")), agora.Unavailable)
	l.Close()
	if err := a.EndLane(await.Context(t), lane("s1", 1, true)); err != jslog.ErrDeposed {
		t.Errorf("EndLane under an old epoch: %v, want %v", err, jslog.ErrDeposed)
	}
	got := listen(t, b, bob, From{}).quiet(t)
	want := []string{"one", "two", "done", "end", "STREAM_ABORTED", "STREAM_ABORTED"}
	if !slices.Equal(bodies(got), want) || got[4].Stream != "one" || got[5].Stream != "two" || got[4].From != "alice" || got[4].Again {
		t.Fatalf("got %v, want %v", bodies(got), want)
	}
}

func TestPresenceKnowsStreamsThatRetentionTook(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.MaxRecords = 4 })
	other := b.Lane(LaneConfig{From: "carol", Session: "s9", Epoch: 1, To: bob})
	defer other.Close()
	for range 5 {
		store(t, other, text("flood"))
	}
	cfg := lane("s1", 2, true)
	cfg.Open = []OpenStream{{Stream: "gone", Kind: agora.Request, Indexed: true}}
	l := b.Lane(cfg)
	store(t, l, indexed(agora.Chunk, "gone", 7))
	wantCode(t, put(t, l, indexed(agora.Chunk, "over", 7)), agora.StreamAborted) // it may have ended, or not
	l.Close()
	cfg.Epoch = 3
	cfg.Open = append(cfg.Open, OpenStream{Stream: "other", Kind: agora.Reply})
	if err := b.EndLane(await.Context(t), cfg); err != nil {
		t.Fatal(err)
	}
	got := listen(t, b, bob, From{}).quiet(t)
	got = got[len(got)-4:]
	if got[1].Stream != "over" || got[1].Part != agora.Abort || !got[1].Again {
		t.Errorf("got %+v of a stream of which nothing is left", got[1])
	}
	got = slices.Delete(got, 1, 2)
	if !got[0].Again || got[1].Part != agora.Abort || got[1].Again || got[2].Stream != "other" || !got[2].Again || got[2].Kind != agora.Reply {
		t.Errorf("got %+v", got)
	}
}

func TestAPressedLaneGathers(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	l.Pressed(time.Hour)
	var told atomic.Int64
	for range 20 {
		l.Put(text("x"), func(Result) { told.Add(1) })
	}
	l.Pressed(0)
	await.True(t, "all are stored", func() bool { return told.Load() == 20 })
	if n := b.Stats().Records; n != 1 {
		t.Errorf("%d records, want 1", n)
	}
	l.Pressed(30 * time.Millisecond)
	l.Put(text("x"), func(Result) { told.Add(1) })
	await.True(t, "the pause is over", func() bool { return told.Load() == 21 })
}

func TestCloseAnswersWhatIsInHand(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() })
	l := b.Lane(lane("s1", 1, false))
	c.Cut()
	await.True(t, "the connection is lost", func() bool { return !b.Connected() })
	results := make(chan Result, 3)
	for range 2 {
		l.Put(text("x"), func(r Result) { results <- r })
	}
	l.Close()
	l.Close()
	l.Put(text("x"), func(r Result) { results <- r })
	for range 3 {
		wantCode(t, await.Recv(t, "an answer", results), agora.Unavailable)
	}
	if err := l.Flush(await.Context(t)); err == nil {
		t.Error("a lane closed with parts in hand handed over cleanly")
	}
}

func TestPublishStoresAKeyOnce(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	room := agora.ToSpace("default", "room")
	m := agora.Message{Kind: agora.Roster, To: room, Body: []byte("v1")}
	first, err := a.Publish(await.Context(t), "v1", m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Publish(await.Context(t), "v1", m)
	if err != nil || again != first {
		t.Errorf("Publish = %d, %v; want %d", again, err, first)
	}
	m.To = agora.ToSpace("default", "other")
	if _, err := b.Publish(await.Context(t), "v1", m); err != nil || b.Stats().Records != 1 {
		t.Errorf("the same key in another space: %v, %+v", err, b.Stats())
	}
	if got := listen(t, b, room, From{}).quiet(t); len(got) != 1 || got[0].Kind != agora.Roster {
		t.Errorf("got %+v", got)
	}
}

func TestQuestionsAreAnsweredByName(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	stop, err := a.Answer("edge 1", func(_ context.Context, q []byte) []byte { return append([]byte("re "), q...) })
	if err != nil {
		t.Fatal(err)
	}
	if err := a.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := b.Ask(await.Context(t), "edge 1", []byte("q"))
	if err != nil || string(got) != "re q" {
		t.Errorf("Ask = %q, %v", got, err)
	}
	stop()
	stop()
	if _, err := b.Ask(await.Context(t), "edge 1", nil); !errors.Is(err, ErrNoEdge) {
		t.Errorf("Ask = %v once nobody answers", err)
	}
}

func TestAQuestionThatCrossesTheEndOfAnsweringIsToldThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	for range 100 {
		stop, err := a.Answer("edge 1", func(context.Context, []byte) []byte { return []byte("yes") })
		if err != nil {
			t.Fatal(err)
		}
		if err := a.nc.Flush(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			stop()
		}()
		for err == nil {
			_, err = b.Ask(await.Context(t), "edge 1", nil)
		}
		if !errors.Is(err, ErrNoEdge) {
			t.Fatal(err)
		}
		<-ended
	}
}

// What was refused while the log could not be reached is remembered; too much of it ends the lane.
func TestALaneThatLostMoreThanItRemembersEnds(t *testing.T) {
	t.Parallel()
	deposed := make(chan struct{})
	b := testBroker(t, testServer(t, 1), nil)
	cfg := lane("s1", 1, false)
	cfg.Deposed = func() { close(deposed) }
	l := b.Lane(cfg)
	defer l.Close()
	l.mu.Lock()
	for k := 0; !l.ledger.LostTooMuch(); k++ {
		m := part(agora.Chunk, fmt.Sprint(k), "")
		l.ledger.LoseLater(&m)
	}
	l.state = laneSuspended
	l.mu.Unlock()
	wantCode(t, put(t, l, text("one more")), agora.Unavailable)
	await.Recv(t, "word that the lane is over", deposed)
	wantCode(t, put(t, l, text("x")), agora.Unavailable)
}

func TestOperatorsAreToldThatTheLogIsAway(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() })
	at := publish(t, b, "s1", "1")
	c.Cut()
	await.True(t, "the connection is lost", func() bool { return !b.Connected() })
	ctx, cancel := context.WithTimeout(await.Context(t), 100*time.Millisecond)
	defer cancel()
	for what, f := range map[string]func() error{
		"Purge":   func() error { _, err := b.Purge(ctx, bob, at[0]); return err },
		"Mailbox": func() error { _, err := b.Mailbox(ctx, bob); return err },
		"Unread":  func() error { _, err := b.Unread(ctx, bob, 0); return err },
		"Last":    func() error { _, err := b.Last(ctx, bob); return err },
		"Find": func() error {
			f, err := b.Find(ctx, Search{To: bob, Seq: at[0]})
			if err == nil && !f.Whole { // its time was over: it says that it did not see all
				err = ledger.Unavailable(nil)
			}
			return err
		},
	} {
		if err := f(); agora.AsError(err) == nil || agora.AsError(err).Code != agora.Unavailable {
			t.Errorf("%s = %v, want UNAVAILABLE", what, err)
		}
	}
}
