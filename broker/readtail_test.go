package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
)

// reads returns a count of the answers of many records that b has asked for since.
func reads(t *testing.T, b *Broker) (count func() int) {
	t.Helper()
	sub, err := b.nc.SubscribeSync("$JS.API.DIRECT.GET.>")
	if err != nil {
		t.Fatal(err)
	}
	return func() (n int) {
		if err := b.nc.FlushWithContext(await.Context(t)); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := sub.NextMsg(0); err != nil {
				return n
			}
			n++
		}
	}
}

func TestWhoMissedLittleReadsItOneByOne(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	at := publish(t, b, "s1", names(0, jslog.TailRecords+1)...)
	count := reads(t, b)
	in := listen(t, b, bob, From{After: at[0]})
	if got := bodies(in.read(t, jslog.TailRecords)); !slices.Equal(got, names(1, jslog.TailRecords+1)) {
		t.Errorf("got %v", got)
	}
	in.quiet(t)
	if n := count(); n > 0 || b.Stats().Refills != 1 {
		t.Errorf("%d reads of many records, %d in all", n, b.Stats().Refills)
	}
	publish(t, b, "s2", "live")
	if got := bodies(in.next(t)); !slices.Equal(got, []string{"live"}) {
		t.Errorf("then got %v", got)
	}
}

func TestWhoMissedMuchReadsTheRestAtOnce(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	at := publish(t, b, "s1", names(0, 3*jslog.TailRecords)...)
	count := reads(t, b)
	in := listen(t, b, bob, From{After: at[0]})
	if got := bodies(in.read(t, 3*jslog.TailRecords-1)); !slices.Equal(got, names(1, 3*jslog.TailRecords)) {
		t.Errorf("got %v", got)
	}
	in.quiet(t)
	if n := count(); n != 1 {
		t.Errorf("%d reads of many records, want 1", n)
	}
}

func TestWhatIsGoneIsToldToWhoMissedLittle(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	at := publish(t, b, "s1", names(0, 4)...)
	s, err := b.js.Stream(await.Context(t), jslog.Locate(bob, 1).Stream)
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range at[:2] { // the last one that the listener has, and the first that it missed
		if err := s.DeleteMsg(await.Context(t), gone>>agora.SeqShift); err != nil {
			t.Fatal(err)
		}
	}
	in := listen(t, b, bob, From{After: at[0]})
	got := in.read(t, 3)
	if got[0].Kind != agora.Gap || got[0].Seq < at[1] || !slices.Equal(bodies(got[1:]), names(2, 4)) {
		t.Errorf("got %v, want a gap and what is left", got)
	}
}

func TestTheLeadersWordOfBeforeIsNotTakenForWhatHasComeSince(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	at := publish(t, b, "s1", names(0, 2)...)
	in := listen(t, b, bob, From{After: at[0]})
	last, known := in.endsHere(await.Context(t), time.Now())
	if known {
		t.Fatal("the leader has more, and the inbox is live")
	}
	publish(t, b, "s2", "2") // it is dropped, as the inbox lags
	await.True(t, "it is heard of", func() bool { in.mu.Lock(); defer in.mu.Unlock(); return in.end.highest > last.Seq })
	p, err := in.page(await.Context(t), 1<<20, last)
	if err != nil || p.Last != last {
		t.Fatalf("what was missed: %+v, %v", p, err)
	}
	for k := range p.Records {
		in.accept(nil, &p.Records[k])
	}
	if in.reading.hears(readMoves); in.goLive(last, time.Now()) {
		t.Error("it is live, and lacks what came while it read")
	}
	if got := bodies(in.read(t, 1)); !slices.Equal(got, []string{"2"}) {
		t.Errorf("then it reads %v", got)
	}
}
