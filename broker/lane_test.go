package broker

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
)

var bob = agora.ToAgent("default", "bob ☃")

func lane(session string, epoch uint64, used bool) LaneConfig {
	return LaneConfig{From: "alice", Session: session, Epoch: epoch, To: bob, Used: used}
}

func TestWhatIsPutArrivesInOrder(t *testing.T) {
	t.Parallel()
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
	if err := l.Flush(await.Context(t)); err != nil {
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
	last, err := b.Last(await.Context(t), bob)
	if err != nil || last != got[999].Seq {
		t.Errorf("Last = %d, %v; want %d", last, err, got[999].Seq)
	}
	if n, err := b.Unread(await.Context(t), bob, last); n != 0 || err != nil {
		t.Errorf("Unread = %d, %v; want none", n, err)
	}
	if n, err := b.Unread(await.Context(t), bob, 0); n != int(a.Stats().Records) || err != nil {
		t.Errorf("Unread = %d, %v; want %d", n, err, a.Stats().Records)
	}
}

func TestAZombieIsRefusedBehindTheFence(t *testing.T) {
	t.Parallel()
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
	await.True(t, "the zombie is told", func() bool { return deposed.Load() == 1 })
	if err := zombie.Flush(await.Context(t)); err == nil {
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
	t.Parallel()
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
	heir.mu.Lock()
	open := heir.ledger.Running()
	heir.mu.Unlock()
	if len(open) != 2 || open[0].Stream != "n" || !open[0].Indexed || open[1].Stream != "x" {
		t.Errorf("open are %+v", open)
	}
}

func TestAPlainStreamGoesOnAfterACleanEndAndIsAbortedAfterADirtyOne(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	a, b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() }), testBroker(t, s, nil)
	nudges := make(chan *nats.Msg, 16)
	if _, err := b.nc.ChanSubscribe(jslog.Locate(bob, 1).Live, nudges); err != nil {
		t.Fatal(err)
	}
	if err := b.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	l := a.Lane(lane("s1", 1, false))
	defer l.Close()
	store(t, l, text("1"))
	c.Deafen()
	result := make(chan Result, 1)
	l.Put(text("2"), func(r Result) { result <- r })
	await.True(t, "the record is stored", func() bool { n, err := b.Unread(t.Context(), bob, 0); return err == nil && n == 2 })
	c.Reset() // the acknowledgement is lost; the record is sent again after the reconnect
	r := await.Recv(t, "the record without an answer is sent again", result)
	if r.Err != nil || r.Again {
		t.Fatalf("result = %+v, want stored", r)
	}
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"1", "2"}) {
		t.Fatalf("got %v", got)
	}
	await.True(t, "a nudge comes", func() bool {
		select {
		case m := <-nudges:
			return m.Header.Get(nudgeHeader) == fmt.Sprint(r.Seq>>8)
		default:
			return false
		}
	})
}

func TestANudgeBringsWhatWasNeverHandedOn(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	in := listen(t, b, bob, From{})
	in.quiet(t)
	top := b.dispatch.m[jslog.Locate(bob, 1).Live]
	if err := top.nats.Unsubscribe(); err != nil { // what is handed on now is lost
		t.Fatal(err)
	}
	m := text("lost")
	m.To = bob
	seq, err := b.Publish(t.Context(), "k", m)
	if err != nil {
		t.Fatal(err)
	}
	top.each(func(i *Inbox) { i.noteStored(seq >> 8) })
	if got := bodies(in.next(t)); !slices.Equal(got, []string{"lost"}) {
		t.Errorf("got %v", got)
	}
}

func TestARefusalThatIsNotOursIsTriedAgain(t *testing.T) {
	t.Parallel()
	c, b, l := testCabled(t)
	store(t, l, text("1"))
	c.Deafen()
	result := make(chan Result, 1)
	l.Put(text("2"), func(r Result) { result <- r })
	l.mu.Lock()
	reply := l.inflight.msg.Reply
	l.mu.Unlock()
	refusal := &nats.Msg{Subject: reply, Data: []byte(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 0"},"stream":"S","seq":0}`)}
	if a, err := jslog.ParseAck(refusal); err != nil || !a.Fenced() {
		t.Fatalf("parseAck = %+v, %v", a, err)
	}
	b.onAck(refusal)
	c.Mend()
	if r := await.Recv(t, "the record is sent again", result); r.Err != nil || r.Again {
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
	t.Parallel()
	for _, stored := range []bool{true, false} {
		t.Run(fmt.Sprint("stored ", stored), func(t *testing.T) {
			s := testServer(t, 1)
			c := testCable(t, s)
			a := testBroker(t, s, func(cfg *Config) { cfg.URL, cfg.GiveUp = c.Addr(), 300*time.Millisecond })
			b := testBroker(t, s, nil)
			l := a.Lane(lane("s1", 1, false))
			defer l.Close()
			store(t, l, text("1"))
			results := make(chan Result, 2)
			if stored {
				c.Deafen()
				l.Put(text("2"), func(r Result) { results <- r })
				await.True(t, "it is stored", func() bool { n, err := b.Unread(t.Context(), bob, 0); return err == nil && n == 2 })
				c.Cut()
			} else {
				c.Cut()
				await.True(t, "the connection is lost", func() bool { return !a.Connected() })
				l.Put(text("2"), func(r Result) { results <- r })
			}
			l.Put(text("3"), func(r Result) { results <- r })
			await.True(t, "the lane looks", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.recovery != nil })
			c.Reset()
			for range 2 {
				if r := await.Recv(t, "its fate is known", results); r.Err != nil || r.Seq == 0 {
					t.Errorf("result = %+v", r)
				}
			}
			if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"1", "2", "3"}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestARecordThatIsForeverBeingStoredIsLookedUp(t *testing.T) {
	t.Parallel()
	c, b, l := testCabled(t)
	store(t, l, text("1"))
	c.Deafen()
	result := make(chan Result, 1)
	l.Put(text("2"), func(r Result) { result <- r })
	l.mu.Lock()
	reply := l.inflight.msg.Reply
	l.mu.Unlock()
	for range maxBeingStored {
		b.onAck(&nats.Msg{Subject: reply, Data: []byte(`{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"},"stream":"S","seq":0}`)})
	}
	l.mu.Lock()
	away := l.recovery != nil
	l.mu.Unlock()
	if !away {
		t.Error("the lane waits on")
	}
	c.Mend()
	if r := await.Recv(t, "its fate is known", result); r.Err != nil || r.Seq == 0 {
		t.Fatalf("result = %+v, want stored", r)
	}
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %v", got)
	}
}

// Every state of a lane meets every event: only an answer of the log ends a doubt, one that lasts too long has those who wait refused, and nothing brings a lane back
// that is over.
func TestALaneInDoubtSendsNothingBeforeTheLogHasAnswered(t *testing.T) {
	for s := range laneStates {
		for e := range laneEvents {
			l := Lane{state: s}
			changes := l.hears(e)
			if l.state >= laneStates || s.String() == "" || changes != (l.state != s) {
				t.Fatalf("event %d makes %v of %v, and changes it: %t", e, l.state, s, changes)
			}
			var holds bool
			switch next := l.state; {
			case s == laneEnded || e == laneCloses:
				holds = next == laneEnded
			case s == laneDead || e == laneIsDeposed:
				holds = next == laneDead
			case e == laneLearns:
				holds = next == laneActive
			case e == laneDoubts:
				holds = next.asks() && next.refuses() == (s == laneSuspended)
			case s == laneActive: // it has asked nothing that it could give up
				holds = next == laneActive
			default:
				holds = next == laneSuspended
			}
			if !holds {
				t.Errorf("event %d makes %v of %v", e, l.state, s)
			}
		}
	}
}
