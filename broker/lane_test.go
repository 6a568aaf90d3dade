package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
)

var bob = agora.ToAgent("default", "bob ☃")

func lane(session string, epoch uint64, used bool) LaneConfig {
	return LaneConfig{From: "alice", Session: session, Epoch: epoch, To: bob, Used: used}
}

func TestWhatIsPutArrivesInOrder(t *testing.T) {
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	in := listen(t, b, bob, From{})
	l := a.Lane(lane("s1", 1, false))
	defer l.Close()
	var want []string
	var told atomic.Int64
	for i := range 1000 {
		want = append(want, fmt.Sprint(i))
		l.Put(text(fmt.Sprint(i)), func(r Result) {
			if r.Err != nil || told.Add(1) != int64(i+1) {
				t.Errorf("result %d: %+v, out of order or not stored", i, r)
			}
		})
	}
	if err := l.Flush(testContext(t)); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	got := in.read(t, len(want))
	if !slices.Equal(bodies(got), want) {
		t.Fatalf("got %v", bodies(got))
	}
	for i, m := range got {
		if m.From != "alice" || m.Session != "s1" || m.To != bob || i > 0 && m.Seq <= got[i-1].Seq || m.Seq >= agora.MaxSeq {
			t.Fatalf("message %d = %+v", i, m)
		}
	}
	if st := a.Stats(); st.Parts != 1000 || st.Records >= 1000 {
		t.Errorf("%d parts in %d records, want them gathered", st.Parts, st.Records)
	}
	last, err := b.Last(testContext(t), bob)
	if err != nil || last != got[999].Seq {
		t.Errorf("Last = %d, %v; want %d", last, err, got[999].Seq)
	}
	if n, err := b.Unread(testContext(t), bob, last); n != 0 || err != nil {
		t.Errorf("Unread = %d, %v; want none", n, err)
	}
	if n, err := b.Unread(testContext(t), bob, 0); n != int(a.Stats().Records) || err != nil {
		t.Errorf("Unread = %d, %v; want %d", n, err, a.Stats().Records)
	}
}

func TestAZombieIsRefusedBehindTheFence(t *testing.T) {
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	var deposed atomic.Int64
	cfg := lane("s1", 1, false)
	cfg.Deposed = func() { deposed.Add(1) }
	zombie, heir := a.Lane(cfg), b.Lane(lane("s1", 2, true))
	defer zombie.Close()
	defer heir.Close()
	store(t, zombie, text("1"))
	store(t, heir, text("2"))
	wantCode(t, put(t, zombie, text("3")), agora.Unavailable)
	wantCode(t, put(t, zombie, text("4")), agora.Unavailable)
	store(t, heir, text("5"))
	until(t, "the zombie is told", func() bool { return deposed.Load() == 1 })
	if err := zombie.Flush(testContext(t)); err == nil {
		t.Error("a dead lane's hand-over is clean")
	}
	if got := bodies(listen(t, b, bob, From{}).read(t, 3)); !slices.Equal(got, []string{"1", "2", "5"}) {
		t.Errorf("got %v", got)
	}
	if n := deposed.Load(); n != 1 {
		t.Errorf("Deposed called %d times", n)
	}
}

func TestAHeirDropsWhatIsStoredAndGoesOn(t *testing.T) {
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	old := b.Lane(lane("s1", 1, false))
	n1 := store(t, old, numbered(1, part(agora.Start, "n", "1")))
	i1 := store(t, old, ided("id", text("2")))
	store(t, old, indexed(agora.Start, "x", 0))
	store(t, old, indexed(agora.Chunk, "x", 1))
	old.Close()
	heir := b.Lane(lane("s1", 2, true))
	defer heir.Close()
	if r := put(t, heir, numbered(1, part(agora.Start, "other", "1"))); !r.Again || r.Stream != "n" || r.Seq != n1 {
		t.Errorf("number sent again: %+v, want stream n at %d", r, n1)
	}
	if r := put(t, heir, ided("id", text("2"))); !r.Again || r.Seq != i1 {
		t.Errorf("id sent again: %+v, want %d", r, i1)
	}
	if r := put(t, heir, indexed(agora.Chunk, "x", 1)); !r.Again || r.Err != nil {
		t.Errorf("index sent again: %+v", r)
	}
	wantCode(t, put(t, heir, indexed(agora.Chunk, "x", 3)), agora.InvalidRequest)
	store(t, heir, indexed(agora.Chunk, "x", 2))
	store(t, heir, numbered(2, part(agora.Chunk, "n", "3")))
	open := heir.Streams()
	if len(open) != 2 || open[0].Stream != "n" || !open[0].Indexed || open[1].Stream != "x" {
		t.Errorf("Streams = %+v", open)
	}
}

func TestAPlainStreamGoesOnAfterACleanEndAndIsAbortedAfterADirtyOne(t *testing.T) {
	for name, c := range map[string]struct {
		dirty uint64
		want  []string
	}{
		"clean": {0, []string{"a", "b", "i0", "chunk", "i1"}},
		"dirty": {1, []string{"a", "b", "i0", "STREAM_ABORTED", "i1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := testBroker(t, testServer(t, 1), nil)
			old := b.Lane(lane("s1", 1, false))
			store(t, old, part(agora.Start, "p", "a"))
			store(t, old, part(agora.Chunk, "p", "b"))
			i0, i1 := indexed(agora.Start, "i", 0), indexed(agora.End, "i", 1)
			i0.Body, i1.Body = []byte("i0"), []byte("i1")
			store(t, old, i0)
			old.Close()
			cfg := lane("s1", 2, true)
			cfg.Dirty = c.dirty
			heir := b.Lane(cfg)
			defer heir.Close()
			r := put(t, heir, part(agora.Chunk, "p", "chunk"))
			if c.dirty == 0 && r.Err != nil {
				t.Errorf("chunk: %+v", r)
			} else if c.dirty != 0 {
				wantCode(t, r, agora.StreamAborted)
			}
			store(t, heir, i1)
			got := listen(t, b, bob, From{}).read(t, len(c.want))
			if !slices.Equal(bodies(got), c.want) {
				t.Fatalf("got %v, want %v", bodies(got), c.want)
			}
		})
	}
}

func TestARetryThatWasADuplicateNudges(t *testing.T) {
	s := testServer(t, 1)
	c := testCable(t, s)
	a, b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.url }), testBroker(t, s, nil)
	nudges := make(chan *nats.Msg, 16)
	if _, err := b.nc.ChanSubscribe(placeOf(bob, 1).live, nudges); err != nil {
		t.Fatal(err)
	}
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	l := a.Lane(lane("s1", 1, false))
	defer l.Close()
	store(t, l, text("1"))
	c.hold(true)
	result := make(chan Result, 1)
	l.Put(text("2"), func(r Result) { result <- r })
	until(t, "the record is stored", func() bool { n, err := b.Unread(t.Context(), bob, 0); return err == nil && n == 2 })
	c.sever(false) // the acknowledgement is lost; the record is sent again after the reconnect
	r := <-result
	if r.Err != nil || r.Again {
		t.Fatalf("result = %+v, want stored", r)
	}
	until(t, "a nudge comes", func() bool {
		select {
		case m := <-nudges:
			return m.Header.Get(nudgeHeader) == fmt.Sprint(r.Seq>>8)
		default:
			return false
		}
	})
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %v", got)
	}
}

func TestANudgeBringsWhatWasNeverHandedOn(t *testing.T) {
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.Audit = time.Hour })
	in := listen(t, b, bob, From{})
	in.quiet(t)
	top := b.topics.m[placeOf(bob, 1).live]
	if err := top.sub.Unsubscribe(); err != nil { // what is handed on now is lost
		t.Fatal(err)
	}
	m := text("lost")
	m.To = bob
	seq, err := b.Publish(t.Context(), "k", m)
	if err != nil {
		t.Fatal(err)
	}
	top.each(func(i *Inbox) { i.heard(seq >> 8) })
	if got := bodies(in.next(t)); !slices.Equal(got, []string{"lost"}) {
		t.Errorf("got %v", got)
	}
}

func TestARefusalThatIsNotOursIsTriedAgain(t *testing.T) {
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.url })
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	store(t, l, text("1"))
	c.hold(true)
	result := make(chan Result, 1)
	l.Put(text("2"), func(r Result) { result <- r })
	l.mu.Lock()
	reply := l.flight.msg.Reply
	l.mu.Unlock()
	refusal := &nats.Msg{Data: []byte(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 0"},"stream":"S","seq":0}`)}
	a, err := parseAck(refusal)
	if err != nil || !a.fenced() {
		t.Fatalf("parseAck = %+v, %v", a, err)
	}
	l.acked(reply, a)
	c.hold(false)
	if r := <-result; r.Err != nil || r.Again {
		t.Fatalf("result = %+v, want stored", r)
	}
	if n := b.Stats().Fences; n != 0 {
		t.Errorf("%d fences, want none: nobody else holds the lane", n)
	}
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %v", got)
	}
}

func TestARecordOfUnknownFateIsLookedUp(t *testing.T) {
	for _, stored := range []bool{true, false} {
		t.Run(fmt.Sprint("stored ", stored), func(t *testing.T) {
			s := testServer(t, 1)
			c := testCable(t, s)
			a := testBroker(t, s, func(cfg *Config) { cfg.URL, cfg.GiveUp = c.url, 300*time.Millisecond })
			b := testBroker(t, s, nil)
			l := a.Lane(lane("s1", 1, false))
			defer l.Close()
			store(t, l, text("1"))
			results := make(chan Result, 2)
			if stored {
				c.hold(true)
				l.Put(text("2"), func(r Result) { results <- r })
				until(t, "it is stored", func() bool { n, err := b.Unread(t.Context(), bob, 0); return err == nil && n == 2 })
				c.sever(true)
			} else {
				c.sever(true)
				until(t, "the connection is lost", func() bool { return !a.Connected() })
				l.Put(text("2"), func(r Result) { results <- r })
			}
			l.Put(text("3"), func(r Result) { results <- r })
			until(t, "the lane looks", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.away })
			c.sever(false)
			for range 2 {
				if r := <-results; r.Err != nil || r.Seq == 0 {
					t.Errorf("result = %+v", r)
				}
			}
			if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"1", "2", "3"}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestALaneWithoutALeaseRefusesAndAbortsWhenItHasOne(t *testing.T) {
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
	if err := l.Flush(testContext(t)); err != nil {
		t.Errorf("Flush: %v", err)
	}
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"start", "other", "STREAM_ABORTED", "on"}) {
		t.Errorf("got %v", got)
	}
}

func TestAFullShardRefusesAndEvictsNobody(t *testing.T) {
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
	stream, err := b.js.Stream(t.Context(), placeOf(bob, 1).stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(placeOf(dave, 1).log)); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(testContext(t)); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	wantCode(t, put(t, l, part(agora.Chunk, "s", "x")), agora.StreamAborted)
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"start", "STREAM_ABORTED"}) {
		t.Errorf("bob has %v", got)
	}
	store(t, l, text("room again"))
}

func TestALaneGathersOnlySoMuch(t *testing.T) {
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL, cfg.LaneBytes = c.url, 4<<10 })
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	store(t, l, numbered(1, part(agora.Start, "s", "0")))
	c.sever(true)
	until(t, "the connection is lost", func() bool { return !b.Connected() })
	var mu sync.Mutex
	var results []Result
	for n := range 20 {
		l.Put(numbered(uint64(n+2), part(agora.Chunk, "s", string(make([]byte, 512)))), func(r Result) {
			mu.Lock()
			defer mu.Unlock()
			results = append(results, r)
		})
	}
	c.sever(false)
	until(t, "all are answered", func() bool { mu.Lock(); defer mu.Unlock(); return len(results) == 20 })
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
	until(t, "the stream is aborted", func() bool { n, err := b.Unread(t.Context(), bob, 0); return err == nil && n >= 3 })
	got := listen(t, b, bob, From{}).quiet(t)
	if m := got[len(got)-1]; m.Part != agora.Abort || len(got) != stored+2 {
		t.Errorf("%d messages, the last %+v; want %d and an abort", len(got), m, stored+1)
	}
}

func TestALaneThatCantReachTheLogRefusesAndRecovers(t *testing.T) {
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.url })
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	store(t, l, part(agora.Start, "s", "1"))
	c.sever(true)
	until(t, "the connection is lost", func() bool { return !b.Connected() })
	results := make(chan Result, 8)
	l.Put(part(agora.Chunk, "s", "2"), func(r Result) { results <- r })
	l.Put(text("3"), func(r Result) { results <- r })
	l.mu.Lock()
	l.look(false)
	l.mu.Unlock()
	l.goDown(errSilent)
	wantCode(t, <-results, agora.Unavailable)
	wantCode(t, <-results, agora.Unavailable)
	wantCode(t, put(t, l, part(agora.Chunk, "s", "4")), agora.Unavailable)
	c.sever(false)
	if err := l.Flush(testContext(t)); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	store(t, l, text("5"))
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"1", "STREAM_ABORTED", "5"}) {
		t.Errorf("got %v", got)
	}
}

func TestAPartTooLargeIsRefusedAndEndsItsStream(t *testing.T) {
	b := testBroker(t, testServer(t, 1), nil)
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
			if err := edge.EndLane(testContext(t), lane("s1", 2, true)); err != nil {
				t.Errorf("EndLane: %v", err)
			}
		})
	}
	wg.Wait()
	wantCode(t, put(t, l, part(agora.Chunk, "one", "late")), agora.Unavailable)
	l.Close()
	if err := a.EndLane(testContext(t), lane("s1", 1, true)); err != ErrDeposed {
		t.Errorf("EndLane under an old epoch: %v, want %v", err, ErrDeposed)
	}
	got := listen(t, b, bob, From{}).quiet(t)
	want := []string{"one", "two", "done", "end", "STREAM_ABORTED", "STREAM_ABORTED"}
	if !slices.Equal(bodies(got), want) || got[4].Stream != "one" || got[5].Stream != "two" || got[4].From != "alice" || got[4].Again {
		t.Fatalf("got %v, want %v", bodies(got), want)
	}
}

func TestPresenceKnowsStreamsThatRetentionTook(t *testing.T) {
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
	wantCode(t, put(t, l, indexed(agora.Chunk, "never", 7)), agora.StreamNotFound)
	l.Close()
	cfg.Epoch = 3
	cfg.Open = append(cfg.Open, OpenStream{Stream: "other", Kind: agora.Reply})
	if err := b.EndLane(testContext(t), cfg); err != nil {
		t.Fatal(err)
	}
	got := listen(t, b, bob, From{}).quiet(t)
	got = got[len(got)-3:]
	if !got[0].Again || got[1].Part != agora.Abort || got[1].Again || got[2].Stream != "other" || !got[2].Again || got[2].Kind != agora.Reply {
		t.Errorf("got %+v", got)
	}
}

func TestAPressedLaneGathers(t *testing.T) {
	b := testBroker(t, testServer(t, 1), nil)
	l := b.Lane(lane("s1", 1, false))
	defer l.Close()
	l.Pressed(30 * time.Millisecond)
	var told atomic.Int64
	for range 20 {
		l.Put(text("x"), func(Result) { told.Add(1) })
	}
	until(t, "all are stored", func() bool { return told.Load() == 20 })
	if n := b.Stats().Records; n != 1 {
		t.Errorf("%d records, want 1", n)
	}
	l.Put(text("x"), func(Result) { told.Add(1) })
	l.Pressed(0)
	until(t, "the rest is stored", func() bool { return told.Load() == 21 })
}

func TestALateRecordIsVoidForEveryReader(t *testing.T) {
	s := testServer(t, 1)
	b := testBroker(t, s, nil)
	late := testBroker(t, s, func(c *Config) { c.Now = func() time.Time { return time.Now().Add(-2 * voidAfter) } })
	l := late.Lane(lane("s1", 1, false))
	store(t, l, part(agora.Start, "void", "void"))
	l.Close()
	heir := b.Lane(lane("s1", 2, true))
	defer heir.Close()
	wantCode(t, put(t, heir, part(agora.Chunk, "void", "x")), agora.StreamNotFound)
	store(t, heir, text("good"))
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"good"}) {
		t.Errorf("got %v", got)
	}
}

func TestCloseAnswersWhatIsInHand(t *testing.T) {
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.url })
	l := b.Lane(lane("s1", 1, false))
	c.sever(true)
	until(t, "the connection is lost", func() bool { return !b.Connected() })
	results := make(chan Result, 3)
	for range 2 {
		l.Put(text("x"), func(r Result) { results <- r })
	}
	l.Close()
	l.Close()
	l.Put(text("x"), func(r Result) { results <- r })
	for range 3 {
		wantCode(t, <-results, agora.Unavailable)
	}
	if err := l.Flush(testContext(t)); err == nil {
		t.Error("a lane closed with parts in hand handed over cleanly")
	}
}

func TestPublishStoresAKeyOnce(t *testing.T) {
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	room := agora.ToSpace("default", "room")
	m := agora.Message{Kind: agora.Roster, To: room, Body: []byte("v1")}
	first, err := a.Publish(testContext(t), "v1", m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Publish(testContext(t), "v1", m)
	if err != nil || again != first {
		t.Errorf("Publish = %d, %v; want %d", again, err, first)
	}
	m.To = agora.ToSpace("default", "other")
	if _, err := b.Publish(testContext(t), "v1", m); err != nil || b.Stats().Records != 1 {
		t.Errorf("the same key in another space: %v, %+v", err, b.Stats())
	}
	if got := listen(t, b, room, From{}).quiet(t); len(got) != 1 || got[0].Kind != agora.Roster {
		t.Errorf("got %+v", got)
	}
}

func TestQuestionsAreAnsweredByName(t *testing.T) {
	s := testServer(t, 1)
	a, b := testBroker(t, s, nil), testBroker(t, s, nil)
	stop, err := a.Answer("edge 1", func(_ context.Context, q []byte) []byte { return append([]byte("re "), q...) })
	if err != nil {
		t.Fatal(err)
	}
	if err := a.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := b.Ask(testContext(t), "edge 1", []byte("q"))
	if err != nil || string(got) != "re q" {
		t.Errorf("Ask = %q, %v", got, err)
	}
	stop()
	stop()
	until(t, "nobody answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := b.Ask(ctx, "edge 1", nil)
		return err == ErrNoEdge
	})
}
