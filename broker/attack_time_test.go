package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/await"
)

// slowClock takes the log's time to be so far behind that what the network holds for the given time is void.
func slowClock(slack time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(slack - record.VoidAfter) }
}

// strand has the first holder lose its connection while its record is under way.
func (x *attack) strand() {
	x.t.Helper()
	x.c.Strand()
	await.True(x.t, "it connects anew", func() bool { return x.e1.nc.Stats().Reconnects == 1 && x.e1.Connected() })
}

// TestACopyHeldBeyondTheDuplicateWindowIsVoid: the network holds a record, its connection is lost, it is sent again and
// stored; the first copy arrives when the server has forgotten its id, and no fence stands in its way. It was told twice.
func TestACopyHeldBeyondTheDuplicateWindowIsVoid(t *testing.T) {
	t.Parallel()
	for slack := time.Second; ; slack *= 2 { // until the record is sent again in time
		if began := time.Now(); copyIsVoid(t, slack, began) {
			break
		}
	}
}

// copyIsVoid plays that with a first copy that is void after slack. It returns false where it took longer than that to send the record again.
func copyIsVoid(t *testing.T, slack time.Duration, began time.Time) bool {
	x := testAttack(t, slowClock(slack), nil)
	in := listen(t, x.e2, bob, From{})
	x.under(text("1"))
	under := time.Now()
	x.strand()
	if r := await.Recv(t, "the record is sent again", x.results); r.Err != nil {
		t.Fatalf("sent again: %+v", r)
	}
	if time.Since(began) >= slack {
		return false
	}
	if got := bodies(in.read(t, 1)); !slices.Equal(got, []string{"1"}) {
		t.Fatalf("got %v", got)
	}
	x.die() // the copy is under way
	x.forgetIDs()
	<-time.After(time.Until(under.Add(slack + 50*time.Millisecond)))
	x.c.Mend()
	await.True(t, "the copy is stored", func() bool { n, err := x.e2.Unread(t.Context(), bob, 0); return err == nil && n == 2 })
	if got := in.quiet(t); len(got) != 0 {
		t.Errorf("the copy was told: %v", bodies(got))
	}
	x.want("1")
	heir := x.heir(1)
	store(t, heir, text("2"))
	x.want("1", "2")
	return true
}

// forgetIDs has the server forget the ids of all that is stored, as it does once the duplicate window is over.
func (x *attack) forgetIDs() {
	x.t.Helper()
	at := jslog.Locate(agora.ToAgent("default", "carol"), 1)
	publish := func() (isKnown bool) {
		ack, err := x.e2.js.Publish(await.Context(x.t), at.Log(), []byte("x"), jetstream.WithMsgID("the last of all"))
		if err != nil {
			x.t.Fatal(err)
		}
		return ack.Duplicate
	}
	publish()
	for short := range time.Duration(2) { // a second change makes sure that the server looks at the first one's window
		change(x.t, x.e2, at.Stream, func(c *jetstream.StreamConfig) { c.Duplicates = shortest + short })
	}
	await.True(x.t, "the ids are forgotten", func() bool { return !publish() })
}

// TestACopyThatOutlivesItsFenceIsVoid: the fence that would refuse it has grown too old to be kept. It was told behind
// what the successor had said since.
func TestACopyThatOutlivesItsFenceIsVoid(t *testing.T) {
	t.Parallel()
	x := testAttack(t, slowClock(shortest/2), nil)
	x.under(text("of the first"))
	x.die()
	heir := x.heir(1)
	store(t, heir, text("of the heir"))
	grow(t, x.e2, heir.at.Stream) // what the heir has just said, too
	x.c.Mend()
	await.True(t, "the copy is stored", func() bool { n, err := x.e2.Unread(t.Context(), bob, 0); return err == nil && n == 1 })
	if got := bodies(listen(t, x.e2, bob, From{}).quiet(t)); len(got) != 0 {
		t.Errorf("the copy was told: %v", got)
	}
	store(t, heir, text("on"))
	x.want("on")
}

// TestACopyOfWhatWasGivenUpIsRefused: nobody answers, the lane gives the record up, fences itself, finds that it is not
// stored and sends its parts in another record. Then the first copy arrives.
func TestACopyOfWhatWasGivenUpIsRefused(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, func(c *Config) { c.GiveUp = 300 * time.Millisecond })
	x.under(text("1"))
	await.True(t, "the lane gives up", func() bool { x.old.mu.Lock(); defer x.old.mu.Unlock(); return x.old.recovering })
	x.strand()
	if r := await.Recv(t, "it is stored anew", x.results); r.Err != nil || r.Again {
		t.Fatalf("stored anew: %+v", r)
	}
	x.c.Mend()
	await.True(t, "the copy has arrived", func() bool { return x.c.UnderWay() == 0 && x.srv.Clients(0) == 2 })
	store(t, x.old, text("2"))
	x.want("1", "2")
}

// TestClocksWithinTheirBoundHarmNobody: edges that take the log's time for nearly 15 s off what it is, either way, lose nothing and take
// nothing of each other for void or for passed by retention.
func TestClocksWithinTheirBoundHarmNobody(t *testing.T) {
	t.Parallel()
	const off = 14 * time.Second
	for _, skew := range []time.Duration{off, -off} {
		t.Run(skew.String(), func(t *testing.T) {
			skewed := func() time.Time { return time.Now().Add(skew) }
			x := testAttack(t, skewed, nil)
			store(t, x.old, numbered(1, text("1")))
			x.under(numbered(2, text("late")))
			x.die()
			heir := x.heir(1)
			store(t, heir, numbered(2, text("2")))
			x.arrive()
			back := testBroker(t, x.srv, func(c *Config) { c.clock = skewed }).Lane(lane("s1", 3, true))
			defer back.Close()
			if r := put(t, back, numbered(2, text("2"))); !r.Again {
				t.Errorf("sent again: %+v", r)
			}
			store(t, back, numbered(3, text("3")))
			x.want("1", "2", "3")
		})
	}
}
