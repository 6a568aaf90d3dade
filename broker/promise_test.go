package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
)

// TestADuplicateIsNotHandedOnAgainAndItsReceiverIsNudged: the first copy is stored and its handing on is lost, and so
// is the acknowledgement; the server acknowledges the retry as a duplicate and hands nothing on.
func TestADuplicateIsNotHandedOnAgainAndItsReceiverIsNudged(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	a, b := testBroker(t, s, func(cfg *Config) { cfg.URL, cfg.notify = c.Addr(), time.Hour }), testBroker(t, s, nil)
	in := settled(t, b)
	l := a.Lane(lane("s1", 1, false))
	defer l.Close()
	result := make(chan Result, 1)
	deaf(t, b, func() {
		c.Deafen()
		l.Put(text("1"), func(r Result) { result <- r })
		await.True(t, "the record is stored", func() bool { n, err := b.Unread(t.Context(), bob, 0); return err == nil && n == 1 })
	})
	c.Reset() // the acknowledgement is lost
	if r := await.Recv(t, "the record without an answer is sent again", result); r.Err != nil || r.Again {
		t.Fatalf("result = %+v, want stored", r)
	}
	if got := bodies(in.next(t)); !slices.Equal(got, []string{"1"}) { // no echo and no audit comes before an hour is over
		t.Errorf("got %v", got)
	}
	if n := b.Stats().Repaired; n != 0 {
		t.Errorf("%d inboxes were repaired by an audit", n)
	}
}

// TestWhatANewLeaderHandsOnAgainIsDropped: a new leader may hand on the tail that the old one had handed on before.
func TestWhatANewLeaderHandsOnAgainIsDropped(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	in := settled(t, b)
	tail := make(chan *nats.Msg, 16)
	if _, err := b.nc.ChanSubscribe(jslog.Locate(bob, 1).Live, tail); err != nil {
		t.Fatal(err)
	}
	publish(t, b, "s1", names(0, 5)...)
	if got := bodies(in.read(t, 5)); !slices.Equal(got, names(0, 5)) {
		t.Fatalf("got %v", got)
	}
	for range 5 {
		m := await.Recv(t, "the tail is handed on", tail)
		again := nats.NewMsg(m.Subject)
		again.Header, again.Data = m.Header, m.Data
		if err := b.nc.PublishMsg(again); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, b, "s2", "next")
	if got := bodies(in.read(t, 1)); !slices.Equal(got, []string{"next"}) {
		t.Errorf("got %v, want the next message alone", got)
	}
}

// TestNoTailIsMissedByAListenerThatResumesOnAnotherNode: messages arrive on one node while the listener resumes on
// another, which the first may hear recently, and may be read from a replica that lags.
func TestNoTailIsMissedByAListenerThatResumesOnAnotherNode(t *testing.T) {
	t.Parallel()
	rounds := resumes
	if testing.Short() {
		rounds = 20
	}
	s := testServer(t, 3)
	at := func(k int) *Broker {
		return testBroker(t, s, func(c *Config) {
			c.Replicas, c.MaxRecords, c.mature = 3, 1<<20, 0
			c.Options = append(c.Options, s.Option(k))
		})
	}
	writer, readers := at(0), []*Broker{at(1), at(2)}
	l := writer.Lane(lane("s1", 1, false))
	defer l.Close()
	var after uint64
	sent := 0
	for round := range rounds {
		for range 1 + round%3 {
			l.Put(text(fmt.Sprint(sent)), func(r Result) {
				if r.Err != nil {
					t.Errorf("not stored: %v", r.Err)
				}
			})
			sent++
		}
		in := listen(t, readers[round%2], bob, From{After: after})
		want := names(sent-1-round%3, sent)
		got := in.read(t, len(want))
		if !slices.Equal(bodies(got), want) {
			t.Fatalf("round %d: got %v, want %v", round, bodies(got), want)
		}
		after = got[len(got)-1].Seq
		in.Close()
	}
	if err := l.Flush(await.Context(t)); err != nil {
		t.Errorf("Flush: %v", err)
	}
	t.Logf("%d messages in %d rounds; %d tails were found by a later comparison", sent, rounds, readers[0].Stats().Repaired+readers[1].Stats().Repaired)
}

// TestBothEdgesDieInTheSameInstant: of sender and receiver, in the middle of a stream. What the dead edge had under way
// arrives late; the sender sends again what had no receipt; the receiver resumes after what it has.
func TestBothEdgesDieInTheSameInstant(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, nil)
	receiver := testBroker(t, x.srv, nil)
	in := listen(t, receiver, bob, From{})
	parts := []agora.Message{numbered(1, part(agora.Start, "x", "0"))}
	for n := uint64(2); n < 10; n++ {
		parts = append(parts, numbered(n, part(agora.Chunk, "x", fmt.Sprint(n-1))))
	}
	parts = append(parts, numbered(10, part(agora.End, "x", "9")))
	for _, m := range parts[:4] {
		store(t, x.old, m)
	}
	got := in.read(t, 4)
	x.under(parts[4:7]...)
	x.die()
	receiver.nc.Close()
	heir := x.heir(1)
	for _, m := range parts[2:] { // the receipts of two were lost
		if r := put(t, heir, m); r.Err != nil {
			t.Fatalf("%s sent again: %v", m.Body, r.Err)
		}
	}
	x.arrive()
	got = append(got, listen(t, x.e2, bob, From{After: got[3].Seq}).quiet(t)...)
	if !slices.Equal(bodies(got), names(0, 10)) {
		t.Errorf("the receiver has %v, want each once", bodies(got))
	}
	x.want(names(0, 10)...)
}

// TestAnEmptyLogInPlaceOfTheOldIsToldAndGoneOnWith: NATS comes back without its files while a listener holds a
// position, and another resumes at an edge that never saw the old log.
func TestAnEmptyLogInPlaceOfTheOldIsToldAndGoneOnWith(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := testServerOf(t, natsd.Config{Dir: dir})
	b := testBroker(t, s, func(c *Config) { c.lag = shortest })
	at := publish(t, b, "s1", "1", "2")
	in := settled(t, b)
	l := b.Lane(lane("s2", 1, false))
	defer l.Close()
	had := b.Now() // when all listeners had everything
	s.StopNode(0)
	if err := os.RemoveAll(filepath.Join(dir, "node-0")); err != nil {
		t.Fatal(err)
	}
	if err := s.StartNode(0); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the log takes records again", func() bool { return put(t, l, text("3")).Err == nil })
	if got := bodies(in.read(t, 2)); !slices.Equal(got, []string{"gap", "3"}) {
		t.Errorf("the listener got %v", got)
	}
	anew := testBroker(t, s, nil)
	for _, after := range at {
		got := listen(t, anew, bob, From{After: after, Tail: after, TailAt: had}).quiet(t)
		if !slices.Equal(bodies(got), []string{"gap", "3"}) || got[0].N != after+1 {
			t.Errorf("resumed after %d: %v", after, bodies(got))
		}
	}
	store(t, l, text("4"))
	if got := bodies(in.read(t, 1)); !slices.Equal(got, []string{"4"}) {
		t.Errorf("then the listener got %v", got)
	}
}
