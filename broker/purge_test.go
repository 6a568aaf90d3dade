package broker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/await"
)

// gapsOf returns the gaps among messages, and the bodies of the others.
func gapsOf(msgs []agora.Message) (gaps []agora.Message, rest []string) {
	for _, m := range msgs {
		if m.Kind == agora.Gap {
			gaps = append(gaps, m)
		} else {
			rest = append(rest, string(m.Body))
		}
	}
	return gaps, rest
}

func purge(t *testing.T, b *Broker, after uint64) int {
	t.Helper()
	n, err := b.Purge(await.Context(t), bob, after)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWhatAPurgeDroppedIsToldByOneGap(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		b := testBroker(t, testServer(t, nodes), func(c *Config) { c.Replicas, c.read = nodes, time.Minute })
		at := publish(t, b, "s1", names(0, 5)...)
		read := at[1]
		if n := purge(t, b, read); n != 3 {
			t.Errorf("%d unread records dropped, want 3", n)
		}
		publish(t, b, "s2", "later")
		// Nothing else would tell: the reader was here a moment ago, and nothing is old.
		from := From{After: read, Tail: read, TailAt: b.Now()}
		gaps, rest := gapsOf(listen(t, b, bob, from).read(t, 2))
		if len(gaps) != 1 || !slices.Equal(rest, []string{"later"}) {
			t.Fatalf("%d nodes: gaps %+v, messages %v; want one gap, and what came later", nodes, gaps, rest)
		}
		if g := gaps[0]; g.N != read+1 && g.N != read|(record.MaxParts-1)+1 || g.Seq < at[4] {
			t.Errorf("gap from %d to %d, want from behind %d to %d at least", g.N, g.Seq, read, at[4])
		}
		again := listen(t, b, bob, From{After: gaps[0].Seq, Tail: gaps[0].Seq, TailAt: b.Now()})
		if gaps, rest := gapsOf(again.read(t, 1)); len(gaps) != 0 || !slices.Equal(rest, []string{"later"}) {
			t.Errorf("resumed behind the gap: gaps %+v, messages %v", gaps, rest)
		}
	}
}

func TestAPurgeTellsNothingToWhoHasReadAll(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	reader := listen(t, b, bob, From{})
	at := publish(t, b, "s1", names(0, 3)...)
	reader.read(t, 3)
	purge(t, b, at[0]) // it has not confirmed the others
	publish(t, b, "s2", "later")
	if gaps, rest := gapsOf(reader.read(t, 1)); len(gaps) != 0 || !slices.Equal(rest, []string{"later"}) {
		t.Errorf("gaps %+v, messages %v; want what came later alone", gaps, rest)
	}
	back := listen(t, b, bob, From{After: at[2], Tail: at[2], TailAt: b.Now()})
	if gaps, rest := gapsOf(back.read(t, 1)); len(gaps) != 0 || !slices.Equal(rest, []string{"later"}) {
		t.Errorf("resumed: gaps %+v, messages %v; want what came later alone", gaps, rest)
	}
}

func TestAPurgeOfWhatIsReadDropsNothing(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	at := publish(t, b, "s1", names(0, 3)...)
	if n := purge(t, b, at[2]); n != 0 {
		t.Errorf("%d records dropped, want none", n)
	}
	if n := purge(t, b, at[1]); n != 1 {
		t.Errorf("%d unread records dropped, want 1", n)
	}
	if n := purge(t, b, at[1]); n != 0 { // there is nothing but the mark
		t.Errorf("purged again: %d records dropped, want none", n)
	}
	publish(t, b, "s2", names(0, 2)...)
	if n := purge(t, b, at[1]); n != 2 { // the mark is no message
		t.Errorf("purged once more: %d unread records dropped, want 2", n)
	}
}

func TestAReaderThatIsBehindHearsOfAPurge(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.InboxBytes = 4 << 10 })
	slow := listen(t, b, bob, From{})
	slow.quiet(t)
	publish(t, b, "s1", strings.Split(strings.Repeat("x,", 200), ",")[:200]...)
	await.True(t, "it is behind", func() bool { slow.mu.Lock(); defer slow.mu.Unlock(); return slow.state.lags() })
	purge(t, b, 0)
	publish(t, b, "s2", "later")
	var gaps []agora.Message
	var rest []string
	for !slices.Contains(rest, "later") {
		g, r := gapsOf(slow.next(t))
		gaps, rest = append(gaps, g...), append(rest, r...)
	}
	if len(gaps) != 1 {
		t.Errorf("gaps %+v behind %d messages, want one", gaps, len(rest)-1)
	}
}

func TestAnHeirBehindAPurgeMarksWhatMayHaveBeenStored(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	first := b.Lane(LaneConfig{From: "alice", Session: "s1", Epoch: 1, To: bob})
	for n := range 3 {
		store(t, first, agora.Message{N: uint64(n + 1), Body: []byte("x")})
	}
	first.Close()
	purge(t, b, 0)
	heir := b.Lane(LaneConfig{From: "alice", Session: "s1", Epoch: 2, To: bob, Used: true})
	defer heir.Close()
	seq := store(t, heir, agora.Message{N: 2, Body: []byte("x")}) // its receipt was lost
	reader := listen(t, b, bob, From{})
	for {
		for _, m := range reader.next(t) {
			if m.Seq == seq {
				if !m.Again {
					t.Error("what may have been delivered before is not marked")
				}
				return
			}
		}
	}
}
