package simlog_test

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/jslog"
)

func republishesInOrder(l *log) {
	c := l.client()
	c.make(nil)
	h := c.hear()
	wrote := map[string]uint64{}
	for k, name := range []string{"a", "b", "a", "a", "b"} {
		m := record(l.at(name), "id"+string(rune('0'+k)), 0, name)
		m.Header["Own"] = []string{"x"}
		seq := c.store(m)
		want(l, "sequence", seq, 1000+uint64(k))
		got := h.next()
		want(l, "subject", got.Subject, l.at(name).Live)
		want(l, "body", string(got.Data), name)
		want(l, "Nats-Sequence", sequence(got), seq)
		want(l, "Nats-Last-Sequence", before(got), wrote[name])
		want(l, "Nats-Subject", got.Header.Get("Nats-Subject"), m.Subject)
		want(l, "Nats-Stream", got.Header.Get("Nats-Stream"), l.stream())
		want(l, "Nats-Msg-Id", got.Header.Get(jslog.MessageID), "id"+string(rune('0'+k)))
		want(l, "a header of the record's", got.Header.Get("Own"), "x")
		if _, err := time.Parse(time.RFC3339Nano, got.Header.Get("Nats-Time-Stamp")); err != nil {
			l.Error(err)
		}
		wrote[name] = seq
	}
}

func namesTheLastThatIsKept(l *log) {
	c := l.client()
	c.make(func(s *jetstream.StreamConfig) { s.MaxMsgsPerSubject = 2 })
	h := c.hear()
	first := c.put("a", 0, 1)
	second := c.put("a", 1, 1)
	third := c.put("a", 2, 1) // and the first goes
	for k, last := range []uint64{0, first, second} {
		if got := before(h.next()); got != last {
			l.Errorf("record %d names %d before it, want %d", k, got, last)
		}
	}
	_, err := c.Drop(context.Background(), l.at("a"), third) // and the second
	l.must(err)
	c.put("a", 3, 1)
	want(l, "before it where that is kept", before(h.next()), third)
	_, err = c.Drop(context.Background(), l.at("a"), 0)
	l.must(err)
	c.put("a", 4, 1)
	want(l, "before it where nothing is", before(h.next()), 0)
}

func keepsFencesToItself(l *log) {
	c := l.client()
	c.make(nil)
	h := c.hear()
	p := l.at("a")
	seq, err := c.MoveFence(context.Background(), p.Stream, p.Fence("s"), 7)
	l.must(err)
	f, err := c.FenceAt(context.Background(), p.Stream, p.Fence("s"))
	l.must(err)
	want(l, "fence", f, jslog.Fence{Seq: seq, Epoch: 7})
	stored := c.store(record(p, "x", seq, "x"))
	want(l, "the first that is republished", sequence(h.next()), stored)
}

func knowsDuplicates(l *log) {
	c := l.client()
	c.make(nil)
	h := c.hear()
	p := l.at("a")
	seq := c.store(record(p, "x", 0, "x"))
	for range 3 {
		a := c.publish(record(p, "x", 0, "x"))
		want(l, "answer to a duplicate", a, jslog.Ack{Seq: seq, Duplicate: true})
	}
	other := c.publish(record(l.at("b"), "x", 0, "x"))
	want(l, "an id is the stream's, whatever the subject", other, jslog.Ack{Seq: seq, Duplicate: true})
	next := c.store(record(p, "y", 0, "y"))
	want(l, "republished", sequence(h.next()), seq)
	m := h.next()
	want(l, "republished behind duplicates", sequence(m), next)
	want(l, "before it", before(m), seq)
	want(l, "sequences are not used up by duplicates", next, seq+1)
}

func forgetsIDs(l *log) {
	c := l.client()
	c.make(func(s *jetstream.StreamConfig) { s.Duplicates = time.Second })
	p := l.at("a")
	seq := c.store(record(p, "x", 0, "x"))
	for again := (jslog.Ack{Duplicate: true}); again.Duplicate; {
		<-time.After(100 * time.Millisecond)
		again = c.publish(record(p, "x", 0, "x"))
		if again.Err != nil || again.Duplicate && again.Seq != seq || !again.Duplicate && again.Seq <= seq {
			l.Fatalf("it is answered by %+v, its first was %d", again, seq)
		}
	}
}

func storesUnasked(l *log) {
	c := l.client()
	c.make(nil)
	h := c.hear()
	l.must(c.nc.PublishMsg(record(l.at("a"), "x", 0, "x")))
	seq := sequence(h.next())
	m, err := c.Last(context.Background(), l.stream(), l.at("a").Log())
	l.must(err)
	want(l, "stored", m.Seq, seq)
	want(l, "known by its id", c.publish(record(l.at("a"), "x", 0, "x")), jslog.Ack{Seq: seq, Duplicate: true})
}

func passesCoreMessages(l *log) {
	c := l.client()
	c.make(nil)
	h := c.hear()
	m := nats.NewMsg(l.at("a").Live)
	m.Data = []byte("nudge")
	l.must(l.client().nc.PublishMsg(m))
	got, err := h.sub.NextMsg(10 * time.Second)
	l.must(err)
	want(l, "core message", string(got.Data), "nudge")
	want(l, "headers of it", len(got.Header), 0)
	_, err = c.Last(context.Background(), l.stream(), ">")
	want(l, "stored of it", err, jslog.ErrNone)
}
