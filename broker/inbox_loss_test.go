package broker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
)

func TestWhatRetentionTookIsTold(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.MaxRecords = 10 })
	at := publish(t, b, "s1", names(0, 30)...)
	in := listen(t, b, bob, From{After: at[4], Tail: at[4], TailAt: time.Now()})
	got := in.quiet(t)
	if !slices.Equal(bodies(got), append([]string{"gap"}, names(20, 30)...)) {
		t.Fatalf("got %v", bodies(got))
	}
	if g := got[0]; g.N != at[4]+1 || g.Seq != at[20]-1 || g.To != bob {
		t.Errorf("gap %d to %d, want %d to %d", g.N, g.Seq, at[4]+1, at[20]-1)
	}
	in = listen(t, b, bob, From{After: got[0].Seq})
	if got := bodies(in.quiet(t)); !slices.Equal(got, names(20, 30)) {
		t.Errorf("after the gap: %v", got)
	}
	in = listen(t, b, bob, From{After: at[20], TailAt: time.Now()})
	if got := bodies(in.quiet(t)); !slices.Equal(got, names(21, 30)) {
		t.Errorf("after one that is still there: %v", got)
	}
}

// Others are written to all the time: that is no sign of a loss.
func TestWhatGrewTooOldIsToldOnce(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	at := publish(t, b, "s1", names(0, 3)...)
	p := jslog.Locate(bob, 1)
	grow(t, b, p.Stream)
	in := listen(t, b, bob, From{After: at[0], Tail: at[0], TailAt: time.Now().Add(-2 * b.cfg.MaxAge)})
	gaps := 0
	for range 4 {
		if _, err := b.js.Publish(await.Context(t), jslog.Locate(agora.ToAgent("default", "carol"), 1).Log(), []byte("x")); err != nil {
			t.Fatal(err)
		}
		msgs, err := in.Next(await.Context(t), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		gaps += len(msgs)
	}
	if gaps != 1 {
		t.Errorf("%d gaps were told, want one", gaps)
	}
}

func TestAnOverflowIsToldToThoseHeldToBeQuiet(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.MaxRecords = 10 })
	empty := time.Now()
	at := publish(t, b, "s1", names(0, 30)...)
	for _, from := range []From{
		{After: at[4], Tail: at[4], TailAt: time.Now(), Quiet: true},
		{TailAt: empty, Quiet: true}, // the mailbox was empty when it was looked at last
	} {
		if got := bodies(listen(t, b, bob, from).quiet(t)); !slices.Equal(got, append([]string{"gap"}, names(20, 30)...)) {
			t.Errorf("%+v got %v", from, got)
		}
	}
}

func TestAReaderPassedByRetentionIsTold(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.MaxRecords, c.InboxBytes = 10, 1<<10 })
	in := listen(t, b, bob, From{})
	in.quiet(t)
	publish(t, b, "s1", names(0, 50)...)
	got := bodies(in.quiet(t))
	gap := slices.Index(got, "gap")
	if gap < 1 || !slices.Equal(got[gap+1:], names(40, 50)) || !slices.Equal(got[:gap], names(0, gap)) {
		t.Fatalf("got %v", got)
	}
}

func TestAReaderOfAnEmptyMailboxPassedByRetentionIsTold(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.MaxRecords, c.InboxBytes = 10, 1 })
	in := listen(t, b, bob, From{})
	in.quiet(t) // it has read to the end, and nothing was there
	publish(t, b, "s1", names(0, 50)...)
	if got, want := bodies(in.quiet(t)), append([]string{"gap"}, names(40, 50)...); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestAFirstReaderOfAMailboxThatOverflowedIsTold(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.MaxRecords = 10 })
	publish(t, b, "s1", names(0, 50)...)
	in := listen(t, b, bob, From{})
	if got, want := bodies(in.quiet(t)), append([]string{"gap"}, names(40, 50)...); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// agedMail returns a Broker whose mailbox of bob's held one record, which is gone by age, and its position.
func agedMail(t *testing.T) (*Broker, uint64) {
	b := testBroker(t, testServer(t, 1), nil)
	at := publish(t, b, "s1", "old")
	m := text("elsewhere")
	m.To = agora.ToAgent("default", "carol")
	if _, err := b.Publish(t.Context(), "k", m); err != nil {
		t.Fatal(err)
	}
	grow(t, b, jslog.Locate(bob, 1).Stream)
	return b, at[0]
}

func TestAQuietSleeperSeesNoGap(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, c := range map[string]struct {
		back  uint64 // records that the listener has not got
		ago   time.Duration
		quiet bool
		want  []string
	}{
		"quiet":          {0, hour, true, nil},
		"lately at tail": {0, 0, false, nil},
		"who knows":      {0, hour, false, []string{"gap"}},
		"nothing known":  {0, -1, false, []string{"gap"}},
		"known to lack":  {1, 0, true, []string{"gap"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, at := agedMail(t)
			from := From{After: at - c.back<<8, Tail: at, TailAt: time.Now().Add(-c.ago), Quiet: c.quiet}
			if c.ago < 0 {
				from.Tail, from.TailAt = 0, time.Time{}
			}
			in := listen(t, b, bob, from)
			got := in.quiet(t)
			if !slices.Equal(bodies(got), c.want) {
				t.Fatalf("got %v, want %v", bodies(got), c.want)
			}
			fresh := publish(t, b, "s-"+agora.EncodeToken(name), "new")
			if got := bodies(in.next(t)); !slices.Equal(got, []string{"new"}) {
				t.Errorf("then got %v", got)
			}
			if len(got) > 0 && (got[0].N != from.After+1 || got[0].Seq < at || got[0].Seq >= fresh[0]) {
				t.Errorf("gap %d to %d", got[0].N, got[0].Seq)
			}
			if seq, tailAt := in.Tail(); tailAt.IsZero() || seq < from.After {
				t.Errorf("Tail = %d, %v", seq, tailAt)
			}
		})
	}
}

func TestALogMadeAnewIsTold(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, func(c *Config) { c.lag = shortest })
	at := publish(t, b, "s1", "1", "2")
	in := listen(t, b, bob, From{})
	if got := bodies(in.quiet(t)); !slices.Equal(got, []string{"1", "2"}) {
		t.Fatalf("got %v", got)
	}
	if err := b.js.DeleteStream(t.Context(), jslog.Locate(bob, 1).Stream); err != nil {
		t.Fatal(err)
	}
	b.reconnected()
	await.True(t, "the stream is there again", func() bool { _, err := b.js.Stream(t.Context(), jslog.Locate(bob, 1).Stream); return err == nil })
	anew := publish(t, b, "s2", "3")
	if anew[0] <= at[1] {
		t.Errorf("position %d handed out again: %d", at[1], anew[0])
	}
	got := in.read(t, 2)
	if !slices.Equal(bodies(got), []string{"gap", "3"}) || got[0].Seq >= anew[0] || got[0].N != at[1]|255+1 {
		t.Errorf("living listener got %v %+v", bodies(got), got[0])
	}
	for _, from := range []From{{After: at[0]}, {After: at[1], Tail: at[1], TailAt: time.Now().Add(-time.Minute)}} {
		if got := bodies(listen(t, b, bob, from).quiet(t)); !slices.Equal(got, []string{"gap", "3"}) {
			t.Errorf("%+v got %v", from, got)
		}
	}
	beyond := listen(t, b, bob, From{After: anew[0] + 1<<30, Quiet: true, TailAt: time.Now()})
	if got := beyond.quiet(t); !slices.Equal(bodies(got), []string{"gap", "3"}) || got[0].N > got[0].Seq {
		t.Errorf("beyond the end got %v", bodies(got))
	}
}

// TestALogMadeAnewByAnotherEdgeIsTold: what comes live of the new log, before this edge has heard that it is another one,
// does not follow what was read of the old one.
func TestALogMadeAnewByAnotherEdgeIsTold(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	here, there := testBroker(t, s, nil), testBroker(t, s, nil)
	carol := agora.ToAgent(agora.DefaultTenant, "carol") // has got nothing before
	at := publish(t, there, "s1", "1", "2")
	in, empty := listen(t, here, bob, From{}), listen(t, here, carol, From{})
	if got := bodies(in.quiet(t)); !slices.Equal(got, []string{"1", "2"}) {
		t.Fatalf("got %v", got)
	}
	empty.quiet(t)
	here.lives.Add(1) // as when the connection was lost
	if err := there.js.DeleteStream(t.Context(), jslog.Locate(bob, 1).Stream); err != nil {
		t.Fatal(err)
	}
	there.reconnected()
	await.True(t, "the stream is there again", func() bool { _, err := there.js.Stream(t.Context(), jslog.Locate(bob, 1).Stream); return err == nil })
	anew := publish(t, there, "s2", "3")
	got := in.read(t, 2)
	if !slices.Equal(bodies(got), []string{"gap", "3"}) || got[0].Seq >= anew[0] || got[0].N != at[1]|255+1 {
		t.Errorf("got %v %+v", bodies(got), got[0])
	}
	l := there.Lane(LaneConfig{From: "alice", Session: "s2", Epoch: 1, To: carol})
	defer l.Close()
	store(t, l, text("first"))
	if got := bodies(empty.read(t, 2)); !slices.Equal(got, []string{"gap", "first"}) {
		t.Errorf("who had got nothing got %v", got)
	}
	publish(t, there, "s2", "4")
	if got := bodies(in.next(t)); !slices.Equal(got, []string{"4"}) {
		t.Errorf("then got %v", got)
	}
}

// TestALeaderThatLagsIsNotTakenForALogMadeAnew: a new leader leads before it has applied all that the old one had stored and
// handed on. Here what was read stands for that: it is moved beyond the log's end.
func TestALeaderThatLagsIsNotTakenForALogMadeAnew(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.lag = time.Hour })
	publish(t, b, "s1", "1", "2")
	in := settled(t, b)
	in.mu.Lock()
	in.end.seq += 2
	in.mu.Unlock()
	in.markLagging()
	ctx, cancel := context.WithTimeout(t.Context(), 3*jslog.RetryPause) // it asks again and again
	defer cancel()
	for ctx.Err() == nil {
		if got, err := in.Next(ctx, 1<<20); err == nil && len(got) > 0 {
			t.Fatalf("it tells %v", bodies(got))
		}
	}
	publish(t, b, "s2", "3", "4", "5") // the lane's fence and 3 are what it had caught up with
	if got := bodies(in.read(t, 2)); !slices.Equal(got, []string{"4", "5"}) {
		t.Errorf("then it got %v, want 4 and 5", got)
	}
}
