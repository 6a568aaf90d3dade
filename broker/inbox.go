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

// inboxState is where an inbox gets its messages from.
type inboxState uint8

const (
	inboxLags   inboxState = iota // the log must be read; what comes live is dropped
	inboxStages                   // the log must be read, and its end is near: what comes live is staged, to be joined to what is read
	inboxLive                     // live records are queued
	inboxIdle                     // live records are queued, and Next has said that there is nothing: the next thing wakes
	inboxClosed                   // nothing more comes
	inboxStates
)

// inboxEvent is what happens to an inbox.
type inboxEvent uint8

const (
	inboxQueues  inboxEvent = iota // a live record is queued
	inboxMisses                    // something is stored that it has not got, or may be
	inboxDrains                    // Next has found nothing queued
	inboxNears                     // the log was read up to its end, or nearly
	inboxCatches                   // it has everything that the stream's leader has
	inboxCloses                    // it is closed
	inboxEvents
)

// inboxNext is the life of an inbox: what each event makes of it.
var inboxNext = [inboxStates][inboxEvents]inboxState{
	//           queues     misses       drains     nears       catches up   closes
	inboxLags:   {inboxLags, inboxLags, inboxLags, inboxStages, inboxLive, inboxClosed},
	inboxStages: {inboxStages, inboxStages, inboxStages, inboxStages, inboxLive, inboxClosed},
	inboxLive:   {inboxLive, inboxLags, inboxIdle, inboxLive, inboxLive, inboxClosed},
	inboxIdle:   {inboxLive, inboxLags, inboxIdle, inboxIdle, inboxIdle, inboxClosed},
	inboxClosed: {inboxClosed, inboxClosed, inboxClosed, inboxClosed, inboxClosed, inboxClosed},
}

func (s inboxState) String() string {
	return [...]string{"lags", "stages", "live", "idle", "closed"}[s]
}

// lags reports whether the log must be read.
func (s inboxState) lags() bool { return s == inboxLags || s == inboxStages }

// hears moves the inbox on by an event. It reports whether to wake the reader, which was told that there is nothing.
// The lock is held.
func (i *Inbox) hears(e inboxEvent) (wakes bool) {
	was := i.state
	i.state = inboxNext[was][e]
	return was == inboxIdle && (i.state == inboxLive || i.state == inboxLags)
}

// Listen opens the inbox of an address. It returns at once and reads nothing yet. wake is called, never
// blocking and from any goroutine, when Next has something (it is called soon after Listen, so that the log is read);
// nothing runs and little is kept for an inbox that is quiet. wake must not call Close.
func (b *Broker) Listen(to agora.Address, from From, wake func()) *Inbox {
	i := &Inbox{
		b: b, to: to, at: jslog.Locate(to, b.cfg.Shards), wake: wake,
		end:      inboxEnd{seq: from.After >> agora.SeqShift, tail: max(from.After, from.Tail)},
		complete: inboxComplete{tail: from.Tail, at: from.TailAt},
		reading:  inboxReading{state: from.firstRead(), quiet: from.Quiet, after: from.After, passed: from.After},
	}
	if from.After == 0 {
		i.reading.since = from.Time
	}
	b.count.inboxes.Add(1)
	b.dispatch.join(i)
	b.callbacks.post(i.call)
	return i
}

// Next returns the messages stored after those it returned last, in order and without gaps, about max bytes of them (at
// least one message); none when there are none now: then wake is called when there are. It reads the log, blocking,
// when the inbox fell behind: a slow reader slows only itself. A message of Kind Gap tells that those from its N up to
// its Seq may be lost. One goroutine at a time may call it. The slice is good until the next call; the bodies are
// shared, stay, and are not to be changed. On error nothing is lost: it may be called again (the caller waits a moment;
// wake will not be called for this).
func (i *Inbox) Next(ctx context.Context, max int) ([]agora.Message, error) {
	for {
		msgs, more := i.Take(max)
		if len(msgs) > 0 || !more {
			return msgs, nil
		}
		if i.reading.state == readAsksEmpty && i.beginsEmpty(ctx) {
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

// Take is Next for a caller that must not wait: more reports that nothing is queued and the log must be read, which
// only Next does.
func (i *Inbox) Take(max int) (msgs []agora.Message, more bool) {
	r := &i.reading
	r.stamp = 0
	if r.state == readTells {
		r.hears(readTold)
		i.b.count.gaps.Add(1)
		gap := agora.Message{Kind: agora.Gap, To: i.to, N: 1, Seq: cmp.Or(r.after, record.MaxParts-1)}
		return []agora.Message{gap}, false
	}
	if r.scratch == nil {
		r.scratch = scratchPool.Get().(*readScratch)
	}
	d := r.scratch
	clear(d.msgs)
	for d.msgs = d.msgs[:0]; len(d.msgs) == 0; {
		if more = i.pop(d, max); len(d.batch) == 0 {
			if !more {
				r.release() // a quiet inbox keeps little
			}
			return nil, more
		}
		parts := 0
		for k := range d.batch {
			parts += d.batch[k].parts
		}
		d.msgs = slices.Grow(d.msgs, parts)
		for k := range d.batch {
			q := &d.batch[k]
			d.msgs = i.decode(d.msgs, q.seq, stampOf(q.m), q.m.Data)
		}
		clear(d.batch)
	}
	i.b.count.delivered.Add(uint64(len(d.msgs)))
	return d.msgs, false
}

// beginsEmpty makes the inbox live where the stream's leader has nothing of the mailbox: so it is with most agents that
// are new, and reading the log costs ten times as much.
func (i *Inbox) beginsEmpty(ctx context.Context) bool {
	i.reading.hears(readAsked)
	at := i.b.Now()
	_, err := i.b.log.Last(ctx, i.at.Stream, i.at.Log())
	return errors.Is(err, jslog.ErrNone) && i.goLive(nil, at)
}

// Stamp returns when the first record of what Next returned last was stored, by the log's clock in Unix
// nanoseconds; 0 where it returned none. It is for the caller of Next.
func (i *Inbox) Stamp() int64 { return i.reading.stamp }

// Tail returns when the inbox was last known to have read or queued everything that was stored, and the position it had
// then.
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
	i.live = liveBuffer{}
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

// pop moves about max bytes of the queue into the batch, at least one record, so that decoding holds up no
// live record. When nothing is queued, it reports whether the log must be read, and if not, arms the wake.
func (i *Inbox) pop(d *readScratch, max int) (behind bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	d.batch = d.batch[:0]
	l, size, n := &i.live, 0, 0
	for n < len(l.queue) && (n == 0 || size+l.queue[n].size <= max) {
		size += l.queue[n].size
		n++
	}
	if n == 0 {
		i.hears(inboxDrains)
		return i.state.lags()
	}
	d.batch = append(d.batch, l.queue[:n]...)
	l.bytes -= size
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	if l.queue = l.queue[:rest]; rest == 0 && cap(l.queue) > keepQueue {
		l.queue = nil
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
	r := &i.reading
	if r.records == nil {
		r.records = new(record.Reader)
	}
	o, n, err := r.records.Open(body)
	if err != nil {
		n = record.MaxParts
	}
	before := r.passed
	r.passed = max(before, seq<<agora.SeqShift|uint64(n-1))
	if err != nil {
		i.b.cfg.Log.Warn("record skipped", "stream", i.at.Stream, "seq", seq, "err", err)
		return msgs
	}
	if o.IsVoid(at) {
		i.b.count.void.Add(1)
		return msgs
	}
	if r.stamp == 0 && !at.IsZero() {
		r.stamp = at.UnixNano()
	}
	start := len(msgs)
	for k := range n {
		msgs = append(msgs, agora.Message{From: o.From, Session: o.Session, To: i.to, Seq: seq<<agora.SeqShift | uint64(k)})
		m := &msgs[len(msgs)-1]
		if err := r.records.Part(m); err != nil {
			i.b.cfg.Log.Warn("record skipped", "stream", i.at.Stream, "seq", seq, "err", err)
			clear(msgs[start:])
			return msgs[:start]
		}
		if m.Seq <= r.after || m.Kind == agora.Gap && m.N <= before { // a mark in front of which nothing was missed
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
