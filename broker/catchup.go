package broker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
)

// catchUp returns the next piece of the log. When there is no more of it, the inbox is live again, and read returns
// nothing; nor does it where the log is to be read again, after wait. It waits for its turn first.
func (i *Inbox) catchUp(ctx context.Context, max int) (msgs []agora.Message, wait time.Duration, err error) {
	defer i.b.cfg.Turns.Take()()
	r, at := &i.reading, i.b.Now()
	var last *jslog.Record
	if r.state.asks() {
		r.hears(readAsked)
		var known bool
		if last, known = i.endsHere(ctx, at); known {
			return nil, 0, nil // to be read from where it then stands, if it is not live
		}
	}
	i.b.count.refills.Add(1)
	p, err := i.page(ctx, max, last)
	if err != nil {
		return nil, 0, err
	}
	g, err := i.gap(ctx, &p)
	if err != nil || g.again {
		return g.told, g.wait, err
	}
	msgs = g.told
	for k := range p.Records {
		msgs = i.accept(slices.Grow(msgs, record.Count(p.Records[k].Body)), &p.Records[k])
	}
	r.hears(readMoves)
	if p.Last != nil && i.goLive(p.Last, at) || !p.Whole { // else something has come meanwhile
		return msgs, 0, nil
	}
	i.mu.Lock()
	i.hears(inboxNears) // else, under load, the log would grow faster than its end is read
	i.mu.Unlock()
	if len(msgs) > 0 {
		r.hears(readDrained)
		return msgs, 0, nil
	}
	wait, err = i.caughtUp(ctx, at)
	return nil, wait, err
}

// page reads the log from the last record that was read, which is read again: while it is there, nothing after it is
// gone. It must not use up what the answer may hold. last is what the leader has last, nil where that is not known.
func (i *Inbox) page(ctx context.Context, max int, last *jslog.Record) (jslog.Page, error) {
	q := jslog.Query{Stream: i.at.Stream, Subject: i.at.Log(), Seq: i.end.seq, Bytes: max + i.end.size}
	if i.end.seq == 0 {
		q.Since = i.reading.since
	}
	select {
	case i.b.reads.inboxes <- struct{}{}: // who asks a leader holds up nobody: there may be none
		defer func() { <-i.b.reads.inboxes }()
	case <-ctx.Done():
		return jslog.Page{}, ctx.Err()
	case <-i.b.ctx.Done():
		return jslog.Page{}, errClosed
	}
	if last != nil && i.end.seq > 0 && last.Seq > i.end.seq {
		if p, err := i.b.log.ReadTail(ctx, q, last); err == nil {
			return p, nil
		}
	}
	return i.b.log.Read(ctx, q)
}

// endsHere makes the inbox live again where the stream's leader still has the last record that was read, or that came
// live behind it, and nothing beyond, as most who return have missed nothing: then nothing was taken since either, and
// the log, which costs more, need not be read once more. It returns false where the leader has not got that far, or
// further, or something of that record is still to be read; and where there is no leader: replicas can be read all the
// same. last is what the leader has, nil where that is not known.
func (i *Inbox) endsHere(ctx context.Context, at time.Time) (last *jslog.Record, known bool) {
	last, err := i.b.log.Last(ctx, i.at.Stream, i.at.Log())
	if err != nil {
		return nil, false
	}
	if last.Seq < i.end.seq || last.Seq == i.end.seq && i.reading.state.fresh() && last.End() > i.reading.after {
		return last, false
	}
	if i.goLive(last, at) {
		return last, true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return last, len(i.live.queue) > 0 // what was joined comes before what is to be read
}

// accept appends what a record of the log holds. What was read before is dropped.
func (i *Inbox) accept(msgs []agora.Message, m *jslog.Record) []agora.Message {
	if m.Seq < i.end.seq || m.Seq == i.end.seq && !i.reading.state.fresh() {
		return msgs
	}
	i.mu.Lock()
	i.end.seq, i.end.tail, i.end.size = m.Seq, max(i.end.tail, m.End()), len(m.Body)+jslog.Headroom
	i.mu.Unlock()
	return i.decode(msgs, m.Seq, m.At, m.Body)
}

// maxDoubts is how often the leader may know less than a live record told. Then it is right: that record is gone again.
const maxDoubts = 50

// caughtUp makes the inbox live again when the stream's leader knows of nothing beyond what was read. A replica that
// lags may have answered the reads, and a live record may have come meanwhile: then there is more to read. The reads
// began at at. wait is how long to wait before the log is read again.
func (i *Inbox) caughtUp(ctx context.Context, at time.Time) (wait time.Duration, err error) {
	last, err := i.b.log.Last(ctx, i.at.Stream, i.at.Log())
	if err != nil && !errors.Is(err, jslog.ErrNone) {
		return 0, err
	}
	if i.goLive(last, at) {
		return 0, nil
	}
	return jslog.LagPause, nil
}

// goLive ends the refill if last is the end of what was read; nil means that the subject is empty.
func (i *Inbox) goLive(last *jslog.Record, at time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if last != nil && i.end.seq == 0 && last.At.Before(i.reading.since) {
		i.end.seq, i.end.tail = last.Seq, max(i.end.tail, last.End()) // all there is was stored before the time asked for
	}
	tail := i.end.tail
	i.join()
	if last != nil && last.Seq > i.end.seq {
		return false
	}
	if i.end.highest > i.end.seq && i.reading.doubts < maxDoubts {
		i.reading.doubts++
		return false
	}
	i.drop(i.live.unstage())
	i.hears(inboxCatches)
	i.reading.hears(readMoves)
	i.end.highest, i.reading.doubts, i.reading.quiet = i.end.seq, 0, false
	if i.complete.tail, i.complete.at = tail, at; last != nil {
		i.complete.tail = last.End()
	}
	return true
}
