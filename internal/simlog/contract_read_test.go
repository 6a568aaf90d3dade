package simlog_test

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
)

func leadersKnowAll(l *log) {
	c := l.client()
	c.make(nil)
	ctx, p := context.Background(), l.at("a")
	_, err := c.Last(ctx, p.Stream, p.Log())
	want(l, "last of an empty log", err, jslog.ErrNone)
	var all []uint64
	for k := range 20 {
		seq := c.put("a", k, 1)
		m, err := c.Last(ctx, p.Stream, p.Log())
		l.must(err)
		want(l, "last", m.Seq, seq)
		want(l, "its body", string(m.Body), strconv.Itoa(k))
		want(l, "its subject", m.Subject, p.Log())
		all = append(all, seq)
		c.put("b", k, 1)
	}
	for k, seq := range all {
		m, err := c.At(ctx, p.Stream, seq)
		l.must(err)
		want(l, "at its sequence", string(m.Body), strconv.Itoa(k))
		m, err = c.Next(ctx, p.Stream, p.Log(), seq-1)
		l.must(err)
		want(l, "the next of its subject", m.Seq, seq)
	}
	_, err = c.Next(ctx, p.Stream, p.Log(), all[19]+1)
	want(l, "behind the last", err, jslog.ErrNone)
	_, err = c.At(ctx, p.Stream, all[19]+1000)
	want(l, "nowhere", err, jslog.ErrNone)
	m, err := c.Last(ctx, p.Stream, ">")
	l.must(err)
	want(l, "the last of all", m.Subject, l.at("b").Log())
}

// caughtUp waits until whichever replica answers has all of a subject's records.
func (c *client) caughtUp(p jslog.Location, records int) {
	c.Helper()
	for range 3 * c.nodes {
		await.True(c, "replicas have all", func() bool {
			page, err := c.Read(context.Background(), jslog.Query{Stream: p.Stream, Subject: p.Log()})
			return err == nil && len(page.Records) == records
		})
	}
}

func readsBatches(l *log) {
	c := l.client()
	c.make(nil)
	ctx, p := context.Background(), l.at("a")
	page, err := c.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log()})
	l.must(err)
	want(l, "records of an empty log", len(page.Records), 0)
	want(l, "that is all", page.Whole, true)
	var seqs []uint64
	for k := range 20 {
		seqs = append(seqs, c.put("a", k, 1))
		c.put("b", k, 1)
	}
	c.caughtUp(p, 20)
	page, err = c.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log(), Seq: seqs[3]})
	l.must(err)
	want(l, "records from the fourth", len(page.Records), 17)
	want(l, "that is all", page.Whole, true)
	for k, m := range page.Records {
		want(l, "sequence", m.Seq, seqs[k+3])
		want(l, "body", string(m.Body), strconv.Itoa(k+3))
		want(l, "id", m.ID, "a/"+strconv.Itoa(k+3))
		want(l, "subject", m.Subject, p.Log())
	}
	page, err = c.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log(), Seq: seqs[19] + 1})
	l.must(err)
	want(l, "records behind the last", len(page.Records), 0)
	want(l, "that is all", page.Whole, true)
}

func limitsBatches(l *log) {
	c := l.client()
	c.make(nil)
	ctx, p := context.Background(), l.at("a")
	last := c.put("a", 0, 10)
	c.caughtUp(p, 10)
	read, seq := 0, uint64(0)
	for seq < last {
		page, err := c.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log(), Seq: seq + 1, Batch: 3})
		l.must(err)
		read += len(page.Records)
		want(l, "records in a batch of three", len(page.Records), min(3, 10-read+len(page.Records)))
		want(l, "left", page.Pending, 10-read)
		want(l, "that is all", page.Whole, read == 10)
		seq = page.Records[len(page.Records)-1].Seq
	}
	page, err := c.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log(), Bytes: 1})
	l.must(err)
	want(l, "records in about a byte", len(page.Records), 1)
	want(l, "left", page.Pending, 9)
}

func readsSince(l *log) {
	c := l.client()
	c.make(nil)
	ctx, p := context.Background(), l.at("a")
	c.put("a", 0, 3)
	for k := range 3 {
		<-time.After(5 * time.Millisecond)
		c.put("a", 3+k, 1)
	}
	c.caughtUp(p, 6)
	m, err := c.Last(ctx, p.Stream, p.Log())
	l.must(err)
	page, err := c.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log(), Since: m.At})
	l.must(err)
	if len(page.Records) != 1 || page.Records[0].Seq != m.Seq {
		l.Errorf("since the last's time there are %d records, want that one", len(page.Records))
	}
	page, err = c.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log(), Since: m.At.Add(time.Millisecond)})
	l.must(err)
	want(l, "records since a time after all", len(page.Records), 0)
}

func readsLasts(l *log) {
	c := l.client()
	c.make(nil)
	ctx := context.Background()
	subjects := []string{l.at("a").Log(), l.at("b").Log(), l.at("none").Log()}
	got, err := c.LastSequences(ctx, 10*time.Second, l.stream(), subjects, 0)
	l.must(err)
	want(l, "last records of nobody", len(got), 0)
	c.put("a", 0, 3)
	b := c.put("b", 0, 2)
	a := c.put("a", 3, 1)
	c.caughtUp(l.at("a"), 4)
	got, err = c.LastSequences(ctx, 10*time.Second, l.stream(), subjects, 0)
	l.must(err)
	if len(got) != 2 || got[subjects[0]] != a || got[subjects[1]] != b {
		l.Errorf("last records %v, want %d and %d", got, a, b)
	}
	got, err = c.LastSequences(ctx, 10*time.Second, l.stream(), subjects, b+1)
	l.must(err)
	if len(got) != 1 || got[subjects[0]] != a {
		l.Errorf("last records behind %d: %v, want %d", b, got, a)
	}
	got, err = c.LastSequences(ctx, 10*time.Second, l.stream(), subjects, a+1)
	l.must(err)
	want(l, "last records behind all", len(got), 0)
}

func refusesManyLasts(l *log) {
	c := l.client()
	c.make(nil)
	for k := range 1025 {
		l.must(c.nc.PublishMsg(record(l.at("a"+strconv.Itoa(k)), "", 0, "x")))
	}
	await.True(l, "all are stored", func() bool { return c.led(l.stream()).Records == 1025 })
	ctx, cancel := context.WithTimeout(context.Background(), await.Long)
	defer cancel()
	for { // replicas that lag have fewer
		_, err := c.LastSequences(ctx, 10*time.Second, l.stream(), []string{l.at("*").Log()}, 0)
		if err != nil && !errors.Is(err, jslog.ErrSilent) {
			return
		}
		l.must(ctx.Err())
	}
}

func tellsItsState(l *log) {
	c := l.client()
	c.make(nil)
	p := l.at("a")
	c.put("a", 0, 3)
	last := c.put("b", 0, 2)
	s, err := c.State(context.Background(), l.stream(), p.Log())
	l.must(err)
	want(l, "first", s.First, 1000)
	want(l, "last", s.Last, last)
	want(l, "records", s.Records, 5)
	want(l, "of the subject", s.Count, 3)
	m, err := c.Last(context.Background(), l.stream(), ">")
	l.must(err)
	if s.At.Before(m.At) || s.Created.After(m.At) || s.At.Sub(m.At) > time.Minute {
		l.Errorf("made at %v, last stored at %v, and it is %v", s.Created, m.At, s.At)
	}
	again := c.led(l.stream())
	want(l, "made", again.Created, s.Created)
	want(l, "leader", again.Leader, s.Leader)
}

func makesStreams(l *log) {
	c := l.client()
	c.make(nil)
	s := c.led(l.stream())
	want(l, "last of a stream that is new", s.Last, 999)
	want(l, "first record", c.put("a", 0, 1), 1000)
	ctx, cancel := context.WithTimeout(context.Background(), await.Long)
	defer cancel()
	other := c.config()
	other.MaxMsgsPerSubject = 7
	if _, err := c.js.CreateStream(ctx, other); !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		l.Errorf("a second one of its name: %v, want %v", err, jetstream.ErrStreamNameAlreadyInUse)
	}
	other.FirstSeq = 0
	if info, err := c.js.UpdateStream(ctx, other); err != nil || info.CachedInfo().Config.MaxMsgsPerSubject != 7 {
		l.Errorf("it can't be changed: %v", err)
	}
	_, err := c.js.Stream(ctx, "AGORA_AGENT_none")
	want(l, "one that is not there", errors.Is(err, jetstream.ErrStreamNotFound), true)
}
