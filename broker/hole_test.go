package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// A reader has read a record in part, and retention takes that record: the rest of it is told as a gap, also where the next
// record stands right behind, and where nothing was stored since.
func TestTheRestOfARecordThatIsGoneIsToldAsAGap(t *testing.T) {
	t.Parallel()
	whole := func(t *testing.T, b *Broker) (first, last uint64) {
		l := b.Lane(lane("s1", 1, false))
		defer l.Close()
		results := make(chan Result, 2)
		l.Pressed(time.Hour)
		for _, s := range []string{"1", "2"} {
			l.Put(text(s), func(r Result) { results <- r })
		}
		l.Pressed(0)
		first = await.Recv(t, "the first is stored", results).Seq
		last = await.Recv(t, "the second is stored", results).Seq
		if last != first+1 {
			t.Fatalf("stored at %d and %d, want one record", first, last)
		}
		return first, last
	}
	t.Run("the next stands right behind", func(t *testing.T) {
		b := testBroker(t, testServer(t, 1), func(c *Config) { c.MaxRecords = 4 })
		first, last := whole(t, b)
		flood(t, b, 4)
		got := listen(t, b, bob, From{After: first}).quiet(t)
		if want := []string{"gap", "flood", "flood", "flood", "flood"}; !slices.Equal(bodies(got), want) || got[0].N != last {
			t.Errorf("got %v, want %v from %d", bodies(got), want, last)
		}
		if got := bodies(listen(t, b, bob, From{After: last, Tail: last, TailAt: time.Now()}).quiet(t)); slices.Contains(got, "gap") {
			t.Errorf("who had all of it got %v", got)
		}
	})
	t.Run("nothing was stored since", func(t *testing.T) {
		b := testBroker(t, testServer(t, 1), nil)
		first, last := whole(t, b)
		grow(t, b, b.Streams()[0])
		got := listen(t, b, bob, From{After: first, Tail: last, TailAt: time.Now()}).quiet(t)
		if !slices.Equal(bodies(got), []string{"gap"}) || got[0].N != last {
			t.Errorf("got %v, want a gap from %d", got, last)
		}
		if got := bodies(listen(t, b, bob, From{After: last, Tail: last, TailAt: time.Now()}).quiet(t)); len(got) > 0 {
			t.Errorf("who had all of it got %v", got)
		}
	})
}
