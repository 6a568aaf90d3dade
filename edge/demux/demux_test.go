package demux_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/demux"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

func TestEachStreamAndEachMessageHasAReaderOfItsOwn(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	n, a, b := enter(t, c, 0, "n", demux.Config{}, nil), registered(t, c, 1, "a"), registered(t, c, 1, "b")
	a.open("s")
	one := n.exchange()
	b.open("s")
	two := n.exchange()
	for k := range 10 {
		a.chunks("s", k, k+1, 10)
		b.chunks("s", k, k+1, 10)
	}
	a.say("hello")
	a.end("s")
	whole := n.exchange()
	if p := next(t, whole); body(&p) != "hello" || whole.Peer() != "a" {
		t.Errorf("got %q of %s", p.Body, whole.Peer())
	}
	if _, err := whole.Next(t.Context()); err == nil {
		t.Error("a message has two parts")
	}
	for _, x := range []*demux.Exchange{two, one} {
		if p := next(t, x); p.Part != agora.Start {
			t.Errorf("a stream begins with %v", p.Part)
		}
		count(t, x, 0, 10)
	}
	ends(t, one)
	if one.Peer() != "a" || two.Peer() != "b" || one.Continued() {
		t.Errorf("got streams of %s and %s", one.Peer(), two.Peer())
	}
	b.Send(`{"type":"cancel","to":"n","stream_id":"s"}`)
	if err := fails(t, two, agora.StreamAborted); !errors.Is(err, demux.ErrCancelled) {
		t.Errorf("a cancelled stream ends with %v", err)
	}
	<-two.Context().Done()
}

func TestAReaderThatStandsStillLagsAloneAndCatchesUpWhileMoreComes(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	n := enter(t, c, 0, "n", demux.Config{Queue: 8 << 10}, nil)
	a, b := registered(t, c, 1, "a"), registered(t, c, 1, "b")
	a.open("slow")
	slow := n.exchange()
	b.open("fast")
	fast := n.exchange()
	next(t, fast)
	const parts = 400
	a.chunks("slow", 0, parts, 1<<10)
	b.chunks("fast", 0, parts, 1<<10)
	count(t, fast, 0, parts)
	b.end("fast") // it may have lagged, too, and would hold what it has read ahead
	ends(t, fast)
	a.say("behind all of it")
	close(done(n.exchange()))
	if n.Stats().Lagged.Load() == 0 {
		t.Error("nobody lags")
	}
	if held := n.Held(); held > 16<<10 {
		t.Errorf("%d bytes are held", held)
	}
	a.chunks("slow", parts, 2*parts, 1<<10)
	next(t, slow)
	count(t, slow, 0, 2*parts)
	await.True(t, "it has caught up", func() bool {
		a.chunks("slow", 2*parts, 2*parts+1, 1)
		count(t, slow, 2*parts, 2*parts+1)
		return n.Stats().Rejoined.Load() > 0
	})
	a.end("slow")
	ends(t, slow)
}

func TestOneTooManyThatWouldLagIsCancelled(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	n, a := enter(t, c, 0, "n", demux.Config{Queue: 4 << 10, Lagging: 2}, nil), registered(t, c, 1, "a")
	var xs []*demux.Exchange
	for k := range 3 {
		s := fmt.Sprint("s", k)
		a.open(s)
		xs = append(xs, n.exchange())
		a.chunks(s, 0, 20, 1<<10)
		await.True(t, s+" is full", func() bool { return int(n.Stats().Lagged.Load()+n.Stats().GivenUp.Load()) == k+1 })
	}
	a.Expect(`{"type":"cancel","from":"n","stream_id":"s2"}`)
	fails(t, xs[2], agora.RateLimited)
	<-xs[2].Context().Done()
	for k, x := range xs[:2] {
		a.end(x.Stream())
		next(t, x)
		count(t, x, 0, 20)
		ends(t, xs[k])
	}
	a.Barrier() // and nothing else has come
}

func TestAReaderThatIsClosedCancelsItsStreamOnce(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	n, a := enter(t, c, 0, "n", demux.Config{}, nil), registered(t, c, 1, "a")
	a.open("s")
	x := n.exchange()
	a.chunks("s", 0, 10, 10)
	next(t, x)
	count(t, x, 0, 3)
	x.Close()
	a.Expect(`{"type":"cancel","from":"n","stream_id":"s"}`)
	close(done(x))
	a.chunks("s", 10, 20, 10)
	a.end("s")
	a.say("between")
	if p := next(t, n.exchange()); body(&p) != "between" {
		t.Errorf("got %q", p.Body)
	}
	a.open("s")
	x = n.exchange()
	next(t, x)
	a.end("s")
	ends(t, x)
	x.Close()
	a.say("at last")
	if len(n.other) > 0 {
		t.Errorf("got %+v", <-n.other)
	}
	a.Barrier()
}

const small = 64 // records of a mailbox

// standsStill returns an agent with a small mailbox, and two that say something to it: the reader of a stream of the
// first has read its start.
func standsStill(t *testing.T) (n *door, a, b peer, x *demux.Exchange) {
	t.Helper()
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{MaxRecords: small}})
	n = enter(t, c, 0, "n", demux.Config{Records: small, Patience: time.Nanosecond}, nil)
	a, b = registered(t, c, 1, "a"), registered(t, c, 1, "b")
	a.open("s")
	x = n.exchange()
	next(t, x)
	return n, a, b, x
}

// What one reader leaves unread must not fill the mailbox for all who write to it.
func TestAReaderThatStandsStillForEverIsGivenUp(t *testing.T) {
	t.Parallel()
	n, a, b, x := standsStill(t)
	for k := range 2 * small {
		b.say(fmt.Sprint(k))
		m := n.exchange()
		if p := next(t, m); body(&p) != fmt.Sprint(k) {
			t.Fatalf("got %q, want %d", p.Body, k)
		}
		close(done(m))
	}
	a.Expect(`{"type":"cancel","from":"n","stream_id":"s"}`)
	fails(t, x, agora.RateLimited)
}

// What it had not read is dropped: the session's next holder does not go on with it.
func TestAReaderThatIsGivenUpIsToldSoThoughTheSessionMovesBeforeItAsks(t *testing.T) {
	t.Parallel()
	n, a, b, x := standsStill(t)
	a.end("s")
	for k := 0; x.Context().Err() == nil; k++ {
		b.say(fmt.Sprint(k))
		m := n.exchange()
		next(t, m)
		close(done(m))
	}
	b.open("last")
	last := n.exchange()
	next(t, last)
	go n.Demux.Close()
	await.Recv(t, "the session is over here", last.Context().Done())
	fails(t, last, agora.Unavailable)
	fails(t, x, agora.RateLimited)
}

func TestAStreamThatLostPartsToRetentionEndsSayingSo(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{MaxRecords: 16}})
	n := enter(t, c, 0, "n", demux.Config{Queue: 1}, nil) // it believes the mailbox to be larger than it is
	a := registered(t, c, 1, "a")
	a.open("s")
	x := n.exchange()
	a.chunks("s", 0, 10, 10)
	await.True(t, "it lags", func() bool { return n.Stats().Lagged.Load() == 1 })
	for k := range 64 {
		text := agora.Message{Kind: agora.Request, From: "b", To: agora.ToAgent("default", "n"), Body: []byte("1")}
		if _, err := c.Broker(1).Publish(t.Context(), fmt.Sprint("k", k), text); err != nil {
			t.Fatal(err)
		}
		m := n.exchange()
		next(t, m)
		close(done(m))
	}
	fails(t, x, agora.StreamAborted)
	a.Expect(`{"type":"cancel","from":"n","stream_id":"s"}`)
}

// What waited for its turn and is lost nobody gets: the door learns of that, and the sender that it has arrived is
// not.
func TestAMessageThatIsLostWhileItWaitsIsToldAndNotAcknowledged(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{MaxRecords: 16}})
	n := enter(t, c, 0, "n", demux.Config{Whole: 1, Queue: 1}, nil) // it believes the mailbox to be larger than it is
	a := registered(t, c, 1, "a")
	say := func(id string, wants agora.Receipts) uint64 {
		m := agora.Message{Kind: agora.Request, ID: id, From: "a", To: agora.ToAgent("default", "n"), Body: []byte(id), Meta: agora.Meta{Receipts: wants}}
		seq, err := c.Broker(1).Publish(t.Context(), id, m)
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	say("1", agora.Acked)
	x := n.exchange()
	say("2", agora.Acked)
	lost := say("3", agora.Acked)
	await.True(t, "there is no room for what waits", func() bool { return n.Stats().Lagged.Load() == 1 })
	for k := range 64 {
		say(fmt.Sprint("k", k), 0)
	}
	say("last", agora.Acked)
	for got := "1"; got != "last"; {
		close(done(x))
		x = n.exchange()
		p := next(t, x)
		if got = body(&p); got == "3" {
			t.Fatal("what was to be lost is served")
		}
	}
	close(done(x))
	for _, id := range []string{"1", "2", "last"} {
		a.Expect(fmt.Sprintf(`{"type":"receipt","request_id":%q,"status":"acked"}`, id))
	}
	for m := await.Recv(t, "the door is told", n.other); m.Kind != agora.Gap || lost < m.N || lost > m.Seq; {
		m = await.Recv(t, "the door is told of what is lost", n.other)
	}
}

func TestMessagesWaitForTheirTurnAndNoneIsLost(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	n, a := enter(t, c, 0, "n", demux.Config{Whole: 2, Queue: 4 << 10}, nil), registered(t, c, 1, "a")
	const messages = 300
	for k := range messages {
		a.Send(fmt.Sprintf(`{"type":"send","to":"n","payload":"%d"}`, 1000+k))
	}
	await.True(t, "those that wait have no room", func() bool { return n.Stats().Lagged.Load() > 0 })
	a.open("s")
	var held []*demux.Exchange
	var got []string
	for k := 0; k < messages; {
		x := n.exchange()
		p := next(t, x)
		k++
		got = append(got, body(&p))
		if held = append(held, x); len(held) == 2 {
			if k == 2 {
				if x := n.exchange(); x.Stream() != "s" { // which waits for none of them
					t.Fatal("a message was served before its turn, and before a stream")
				}
			}
			if len(n.offered) > 1 {
				t.Fatalf("%d more are served", len(n.offered))
			}
			for _, x := range held {
				close(done(x))
			}
			held = nil
			slices.Sort(got) // which of the two began first nobody says
			if want := []string{fmt.Sprint(1000 + k - 2), fmt.Sprint(1000 + k - 1)}; !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			got = nil
		}
	}
}

func TestAStreamBeyondThoseThatMayBeServedIsCancelled(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	n, a := enter(t, c, 0, "n", demux.Config{Streams: 1}, nil), registered(t, c, 1, "a")
	a.open("one")
	x := n.exchange()
	a.open("two")
	a.chunks("two", 0, 3, 1)
	a.Expect(`{"type":"cancel","from":"n","stream_id":"two"}`)
	a.end("one")
	next(t, x)
	ends(t, x)
	close(done(x))
	await.True(t, "there is room for another", func() bool {
		a.open("three")
		select {
		case x = <-n.offered:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
}

func TestWhatConcernsAnExchangeReachesItAndTheRestTheDoor(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	n, a := enter(t, c, 0, "n", demux.Config{}, nil), registered(t, c, 1, "a")
	a.Send(`{"type":"send","to":"n","id":"f","payload":{"request_id":"r"},"deadline_ms":1500}`)
	x := n.exchange()
	if p := next(t, x); p.DeadlineMS <= 0 || p.DeadlineMS > 1500 {
		t.Errorf("%d ms are left", p.DeadlineMS)
	}
	x.Bind("r")
	await.Recv(t, "the request runs out of time", x.Context().Done())
	fails(t, x, agora.Timeout)

	a.Send(`{"type":"send","to":"n","stream_id":"s","stream":true,"deadline_ms":300}`)
	x = n.exchange()
	await.Recv(t, "the stream runs out of time", x.Context().Done())
	next(t, x)
	fails(t, x, agora.Timeout)

	a.open("q")
	x = n.exchange()
	x.Bind("answer")
	if err := n.session.Do(t.Context(), &edge.Command{Verb: edge.Send, Message: agora.Message{Kind: agora.Reply, Part: agora.Start, Stream: "answer", To: agora.Address{Agent: "a"}}}); err != nil {
		t.Fatal(err)
	}
	a.Await(`{"type":"reply","stream_id":"answer"}`)
	a.Send(`{"type":"cancel","to":"n","stream_id":"answer"}`)
	await.Recv(t, "the answer is cancelled", x.Context().Done())
	next(t, x)
	if err := fails(t, x, agora.StreamAborted); !errors.Is(err, demux.ErrCancelled) {
		t.Errorf("got %v", err)
	}

	if err := n.session.Do(t.Context(), &edge.Command{Verb: edge.Send, Message: agora.Message{Kind: agora.Request, Part: agora.Start, Stream: "own", To: agora.Address{Agent: "a"}}}); err != nil {
		t.Fatal(err)
	}
	a.Await(`{"type":"message","stream_id":"own"}`)
	a.Send(`{"type":"cancel","to":"n","stream_id":"own"}`)
	if m := await.Recv(t, "a cancel of what is not served", n.other); m.Stream != "own" || m.Part != agora.Cancel {
		t.Errorf("got %+v", m)
	}
}

// Written to a queue is not delivered: that and acked come once the reader has asked for more.
func TestWhatIsNotConsumedIsNeitherDeliveredNorAcknowledged(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	n, a := enter(t, c, 0, "n", demux.Config{}, nil), registered(t, c, 1, "a")
	a.Send(`{"type":"send","to":"n","id":"1","receipts":["delivered","acked"],"payload":"x"}`)
	a.Expect(`{"type":"receipt","request_id":"1","status":"stored"}`)
	x := n.exchange()
	next(t, x)
	a.Send(`{"type":"send","to":"a","payload":2}`)
	a.Expect(`{"type":"message","payload":2}`) // and no receipt before
	if _, err := x.Next(t.Context()); err == nil {
		t.Error("a message has two parts")
	}
	a.ExpectAll(`{"type":"receipt","request_id":"1","status":"delivered"}`, `{"type":"receipt","request_id":"1","status":"acked"}`)
}

func TestTheNextHolderDeliversWhatWasNotConsumed(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 3})
	n, a := enter(t, c, 0, "n", demux.Config{}, nil), registered(t, c, 1, "a")
	a.open("slow")
	slow := n.exchange()
	a.open("fast")
	fast := n.exchange()
	a.chunks("slow", 0, 10, 10)
	a.chunks("fast", 0, 10, 10)
	next(t, fast)
	count(t, fast, 0, 10)
	next(t, slow)
	count(t, slow, 0, 4) // of which the last is in its reader's hands
	resume := n.welcome.ResumeToken
	n.leave()
	fails(t, slow, agora.Unavailable)
	m := enter(t, c, 2, "n", demux.Config{}, func(h *edge.Hello) { h.Resume = resume })
	slow = m.exchange()
	if slow.Stream() != "slow" {
		slow = m.exchange()
	}
	if !slow.Continued() {
		t.Error("a stream that began earlier is not continued")
	}
	p := next(t, slow)
	if body(&p)[:1] != "3" || !p.Redelivered {
		t.Errorf("goes on with %q, redelivered %v", p.Body, p.Redelivered)
	}
	count(t, slow, 4, 10)
	a.chunks("slow", 10, 20, 10)
	count(t, slow, 10, 20)
	a.end("slow")
	ends(t, slow)
}

// Its mailbox has room, and others' messages pass.
func TestAWriterIsSlowedAloneWhereOnlyItsReaderLags(t *testing.T) {
	t.Parallel()
	const records = 512
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{MaxRecords: records}})
	n := enter(t, c, 0, "n", demux.Config{Queue: 64 << 10, Records: records, Patience: time.Nanosecond}, nil)
	a, b := registered(t, c, 1, "a"), registered(t, c, 1, "b")
	a.open("s")
	x := n.exchange()
	const chunks = 400 // each in a record of its own: more than half of the mailbox
	var all = make(chan struct{})
	go func() {
		defer close(all)
		a.chunks("s", 0, chunks, 40<<10)
	}()
	await.True(t, "its writer is named", func() bool { return len(n.Slow()) == 1 })
	for k := range 40 {
		b.say(fmt.Sprint(k))
		m := n.exchange()
		next(t, m)
		close(done(m))
	}
	next(t, x)
	count(t, x, 0, chunks)
	<-all
	a.end("s")
	ends(t, x)
	if n.Stats().GivenUp.Load() > 0 {
		t.Error("a reader was given up though its writer could be slowed")
	}
}
