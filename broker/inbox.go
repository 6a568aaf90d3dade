package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/pause"
)

// From says where an inbox begins.
type From struct {
	After  uint64    // position after which messages are wanted
	Time   time.Time // when After is 0 and this is set: those stored at or after this time
	TailAt time.Time // when the listener was last known to have had everything; zero means unknown
	Tail   uint64    // the position it then had
	Quiet  bool      // presence knows that nothing was sent since TailAt
	Lost   bool      // the listener named another position, which is none of the address's: a gap up to After comes first
}

// Inbox is the messages of one address after a position, in order and without gaps.
//
// Live records are queued as long as each follows the one before it. Where one is missing, or the
// queue is full, the inbox lags: what is queued is still good, what comes later is dropped, and
// Next reads the log from there until it has caught up with both the stream's leader and the
// last live record that was seen.
type Inbox struct {
	b    *Broker
	to   agora.Address
	at   jslog.Location
	wake func()

	wakeMu sync.Mutex // held while wake runs; guards shut
	mu     sync.Mutex // guards the fields below, up to those of Next

	shut     bool
	state    inboxState
	live     liveBuffer
	end      inboxEnd
	complete inboxComplete

	reading inboxReading // Next's own; the lock is not needed
}

// inboxEnd is how far an inbox has come.
type inboxEnd struct {
	seq     uint64 // sequence of the last record queued or read: nothing at or below it is missing
	size    int    // bytes that record takes at most, headers included
	highest uint64 // sequence of the last live record seen, or heard of
	tail    uint64 // position of the last part of the last record queued or read
}

// inboxComplete is when an inbox was last known to have everything.
type inboxComplete struct {
	tail uint64    // that it then had
	at   time.Time // zero when unknown
}

// inboxReading is where Next stands.
type inboxReading struct {
	since   time.Time // while no record was read: those stored from then on
	after   uint64    // position where the inbox began: nothing at or below it is returned
	begins  inboxBegin
	fresh   bool           // the record of that position was not looked at yet
	whole   bool           // what was read last was all that the replica had, or may have been
	quiet   bool           // nothing was sent since the inbox was complete, until the log was read to its end
	doubts  int16          // how often in a row the leader knew less than a live record told
	short   int64          // ticks since when the leader has known less than was read here; 0 when it does not
	passed  uint64         // position of the last part of the last record that was looked at: nothing up to it is missing
	stamp   int64          // when the first record of what Next returned last was stored, Unix nanoseconds; 0 for nothing
	records *record.Reader // nil until a record has come; it knows the names that the next one most often repeats
	scratch *readScratch   // what reading takes; nil until Next has something to read, and again once there is nothing
}

// Listen opens the inbox of an address. It returns at once and reads nothing yet. wake is called, never
// blocking and from any goroutine, when Next has something (it is called soon after Listen, so that the log is read);
// nothing runs and little is kept for an inbox that is quiet. wake must not call Close.
func (b *Broker) Listen(to agora.Address, from From, wake func()) *Inbox {
	i := &Inbox{
		b: b, to: to, at: jslog.Locate(to, b.cfg.Shards), wake: wake,
		end:      inboxEnd{seq: from.After >> agora.SeqShift, tail: max(from.After, from.Tail)},
		complete: inboxComplete{tail: from.Tail, at: from.TailAt},
		reading: inboxReading{
			after: from.After, passed: from.After, fresh: true, quiet: from.Quiet, begins: from.begins(), whole: from.After > 0,
		},
	}
	if from.After == 0 {
		i.reading.since = from.Time
	}
	b.count.inboxes.Add(1)
	b.dispatch.join(i)
	b.callbacks.post(i.call)
	return i
}

// Next returns the messages stored after those it returned last, in order and
// without gaps, about max bytes of them (at least one message); none when there are
// none now: then wake is called when there are. It reads the log, blocking, when the inbox fell behind: a slow reader slows only
// itself. A message of Kind Gap tells that those from its N up to its Seq may be lost. One goroutine at a time may call it. The
// slice is good until the next call; the bodies are shared, stay, and are not to be changed. On error nothing is
// lost: it may be called again (the caller waits a moment; wake will not be called for this).
func (i *Inbox) Next(ctx context.Context, max int) ([]agora.Message, error) {
	for {
		msgs, more := i.Take(max)
		if len(msgs) > 0 || !more {
			return msgs, nil
		}
		if i.beginsEmpty(ctx) {
			continue
		}
		msgs, wait, err := i.catchUp(ctx, max)
		if err == nil && len(msgs) == 0 && wait > 0 && !pause.For(ctx, wait) {
			err = ctx.Err()
		}
		if err != nil {
			return nil, jslog.Unavailable(err)
		}
		if len(msgs) > 0 {
			i.b.count.delivered.Add(uint64(len(msgs)))
			return msgs, nil
		}
	}
}

// Take is Next as far as that need not wait: more tells that nothing is queued but the log is to be read, which only Next does.
func (i *Inbox) Take(max int) (msgs []agora.Message, more bool) {
	i.reading.stamp = 0
	if i.reading.begins == inboxForeign {
		i.reading.begins = inboxBegun
		i.b.count.gaps.Add(1)
		gap := agora.Message{Kind: agora.Gap, To: i.to, N: 1, Seq: cmp.Or(i.reading.after, record.MaxParts-1)}
		return []agora.Message{gap}, false
	}
	msgs, more = i.take(max)
	switch {
	case len(msgs) > 0:
		i.b.count.delivered.Add(uint64(len(msgs)))
	case !more:
		i.reading.release() // a quiet inbox keeps little
	}
	return msgs, more
}

// beginsEmpty makes the inbox live where nothing is known of its mailbox, and the stream's leader has nothing there: so it is with most
// agents that are new, and reading the log costs ten times as much. It returns false, and has changed nothing, where there is something to read.
func (i *Inbox) beginsEmpty(ctx context.Context) bool {
	if i.reading.begins != inboxUnknown {
		return false
	}
	i.reading.begins = inboxBegun
	at := i.b.Now()
	if _, err := i.b.log.Last(ctx, i.at.Stream, i.at.Log()); !errors.Is(err, jslog.ErrNone) || !i.goLive(nil, at) {
		return false
	}
	i.reading.fresh = false
	return true
}

// Stamp returns when the first record of what Next returned last was stored, by the log's clock in Unix
// nanoseconds; 0 where it returned none. It is for who calls Next.
func (i *Inbox) Stamp() int64 { return i.reading.stamp }

// Tail returns when the inbox was last known to have read or queued everything that was stored, and the position it had then.
func (i *Inbox) Tail() (seq uint64, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.complete.tail, i.complete.at
}

// Held returns the bytes of live records that wait for Next. It does not block.
func (i *Inbox) Held() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.live.bytes
}

// Close ends the inbox; wake is not called after it returns.
func (i *Inbox) Close() {
	i.mu.Lock()
	was := i.state
	i.hears(inboxCloses)
	i.live.clear()
	i.mu.Unlock()
	if was == inboxClosed {
		return
	}
	i.b.dispatch.leave(i)
	i.b.count.inboxes.Add(-1)
	i.wakeMu.Lock()
	i.shut = true
	i.wakeMu.Unlock()
}

// call wakes the reader.
func (i *Inbox) call() {
	i.wakeMu.Lock()
	defer i.wakeMu.Unlock()
	if !i.shut {
		i.wake()
	}
}

// take returns what is queued. more says that the log has to be read.
func (i *Inbox) take(max int) (msgs []agora.Message, more bool) {
	d := i.reading.acquire()
	for {
		more := i.pop(d, max)
		if len(d.batch) == 0 {
			return nil, more
		}
		parts := 0
		for k := range d.batch {
			parts += record.Count(d.batch[k].m.Data)
		}
		msgs := slices.Grow(d.msgs[:0], parts)
		for k := range d.batch {
			q := &d.batch[k]
			msgs = i.decode(msgs, q.seq, stampOf(q.m), q.m.Data)
		}
		clear(d.batch)
		if d.msgs = msgs; len(msgs) > 0 {
			return msgs, false
		}
	}
}

// pop moves about max bytes of the queue into the batch, so that decoding holds up no
// live record. With nothing queued it says whether the log has to be read, and if not, arms the wake.
func (i *Inbox) pop(d *readScratch, max int) (behind bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	d.batch = d.batch[:0]
	if i.state == inboxClosed {
		return false
	}
	if d.batch = i.live.dequeue(d.batch, max); len(d.batch) == 0 {
		i.hears(inboxDrains)
	}
	return i.state.lags()
}

// stampOf returns when a live record was stored, by the server's clock.
func stampOf(m *nats.Msg) time.Time {
	if v := m.Header["Nats-Time-Stamp"]; len(v) > 0 {
		if at, err := time.Parse(time.RFC3339Nano, v[len(v)-1]); err == nil {
			return at
		}
	}
	return time.Time{}
}

// decode appends a record's messages beyond the position where the inbox began.
func (i *Inbox) decode(msgs []agora.Message, seq uint64, at time.Time, body []byte) []agora.Message {
	if i.reading.records == nil {
		i.reading.records = new(record.Reader)
	}
	o, n, err := i.reading.records.Open(body)
	if err != nil {
		i.b.cfg.Log.Warn("record skipped", "stream", i.at.Stream, "seq", seq, "err", err)
		i.reading.pass(seq, record.MaxParts)
		return msgs
	}
	before := i.reading.pass(seq, n)
	if o.IsVoid(at) {
		i.b.count.void.Add(1)
		return msgs
	}
	if i.reading.stamp == 0 && !at.IsZero() {
		i.reading.stamp = at.UnixNano()
	}
	start := len(msgs)
	for k := range n {
		msgs = append(msgs, agora.Message{From: o.From, Session: o.Session, To: i.to, Seq: seq<<agora.SeqShift | uint64(k)})
		m := &msgs[len(msgs)-1]
		if err := i.reading.records.Part(m); err != nil {
			i.b.cfg.Log.Warn("record skipped", "stream", i.at.Stream, "seq", seq, "err", err)
			clear(msgs[start:])
			return msgs[:start]
		}
		if m.Seq <= i.reading.after || m.Kind == agora.Gap && m.N <= before { // a mark in front of which nothing was missed
			msgs = msgs[:len(msgs)-1]
			continue
		}
		if m.Kind == agora.Gap { // a purge's mark
			m.N = before + 1
			i.b.count.gaps.Add(1)
		}
	}
	return msgs
}

// pass takes note that a record is read, and returns up to where its reader was before.
func (r *inboxReading) pass(seq uint64, parts int) (before uint64) {
	before = r.passed
	r.passed = max(before, seq<<agora.SeqShift|uint64(parts-1))
	return before
}
