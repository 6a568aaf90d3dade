package broker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/ledger"
	"github.com/agora-relay/agora/broker/record"
)

// LaneConfig names a lane: what one session of an agent sends to one addressee.
type LaneConfig struct {
	From    agora.AgentID
	Session string // id of the sender's session, a token
	Epoch   uint64 // of the claim under which this edge holds the session
	To      agora.Address
	Payer   string                         // the principal whose share of the log it takes; empty where that has no name, or the cluster itself speaks
	Used    bool                           // an earlier holder of the session may have used the lane: fence and read the log before the first record
	Dirty   uint64                         // the highest epoch that ended without handing over; 0 for none
	Parked  *Parked                        // this holder used the lane and put it aside; Used does not count then
	Open    []OpenStream                   // streams that presence knows to be open on this lane: asked only where retention has cut the log
	Valid   func() (at time.Time, ok bool) // wall time of the edge's last good lease renewal, and whether the lease still holds (monotonic); nil: always
	Deposed func()                         // called at most once, not blocking, when a younger epoch holds the lane or it can't go on
}

// valid returns when the edge's lease was renewed last, and whether records may be stored under it now.
func (c *LaneConfig) valid(now time.Time) (at time.Time, ok bool) {
	if c.Valid == nil {
		return now, true
	}
	at, ok = c.Valid()
	return at, ok && now.Sub(at) < record.DoubtAfter // readers would skip it
}

// OpenStream is a stream that has a start and no end yet.
type OpenStream = ledger.OpenStream

// Result is what became of a message put into a lane.
type Result struct {
	Seq    uint64 // its position; for a duplicate that of the first, 0 where that is no longer known
	Stream string // the Stream of the stored message: a duplicate that was given another stream id learns the first one
	N      uint64 // the message's own
	Size   int    // bytes of its body
	Again  bool   // it was there before: nothing was stored
	Err    error  // an *agora.Error; nil when it is stored
}

// Lane sends the messages of one (session, addressee) in order: one record in
// flight, the rest gathers into the next. Nothing runs for a lane with nothing in hand.
//
// A part that could not be stored for the moment (UNAVAILABLE) ends its stream: the lane
// stores an Abort for it as soon as it can, before anything else. And no higher
// number overtakes it: the lane refuses those until the number comes
// again, with the same message or another. So whoever was refused n goes on from n.
type Lane struct {
	b       *Broker
	cfg     LaneConfig
	at      jslog.Location
	stream  *watcher // of the stream that keeps its records
	subject string   // of its records
	origin  int      // what a record says of the lane takes, at most
	number  uint64   // finds the lane when its records are acknowledged

	stuck atomic.Bool // what is in hand waits for longer than an election takes

	mu          sync.Mutex // guards the fields below
	state       laneState
	ledger      ledger.Ledger
	fence       laneFence
	history     laneHistory
	queue       batches  // gather for the next records
	queued      int      // bytes that they take in records, at most
	turn        laneTurn // whether the next record waits for those of other lanes
	pace        lanePace // at which records go
	inflight    *batch   // on its way, or of unknown fate; nil when there is none
	completions completions
	recovery    *recovery // a goroutine of the lane's that is asking the log; nil when there is none
	failures    laneFailures
	watched     bool // the retrier has the lane
}

// laneFence is the fence that the lane's records expect.
type laneFence struct {
	subject string
	seq     uint64 // its sequence; 0 for none
}

// laneHistory is how far the lane's ledger reckons with the log.
type laneHistory struct {
	known     bool   // the ledger is complete: nothing of an earlier holder can be stored any more
	inherited bool   // the log was read once
	last      uint64 // sequence of the last record of the lane that the ledger reckons with
}

// laneFailures are what the lane has refused for the moment, and makes good.
type laneFailures struct {
	gaveUp  bool          // parts were answered UNAVAILABLE that may have been stored, or whose stream could not be aborted
	lost    ledger.Losses // refused while the log could not be reached: their streams are settled when it can
	abortAt time.Time     // when to try next to store what is owed to streams over a hole
}

type laneState uint8

const (
	active    laneState = iota
	suspended           // the log can't be reached: what comes is refused at once
	dead                // a younger epoch holds the lane
	ended               // Close was called
)

// over reports whether the lane takes nothing more.
func (s laneState) over() bool { return s == dead || s == ended }

var errLaneOver = errors.New("the lane is over")

// Lane returns a new lane. Nothing is sent before the first Put.
func (b *Broker) Lane(cfg LaneConfig) *Lane {
	l := &Lane{b: b, cfg: cfg, at: jslog.Locate(cfg.To, b.cfg.Shards)}
	l.stream, l.subject, l.fence.subject = b.watchers[l.at.Stream], l.at.Log(), l.at.Fence(cfg.Session)
	l.origin = record.OriginSize(record.Origin{Session: cfg.Session, From: cfg.From})
	l.ledger, l.history = ledger.New(!cfg.Used), laneHistory{known: !cfg.Used, inherited: !cfg.Used}
	if p := cfg.Parked; p != nil { // it goes on where it was put aside
		l.ledger, l.fence.seq, l.history = p.ledger.Unpark(), p.fenceSeq, laneHistory{known: !p.read, inherited: !p.read, last: p.lastSeq}
		if p.read {
			l.history.last = 0 // all of it is read
		}
		l.cfg.Parked = nil
	}
	b.lanes.add(l)
	b.count.lanes.Add(1)
	return l
}

// Put appends m to what the lane sends and returns at once. done is called exactly once, in
// the order of the Puts, on a goroutine of the Broker's, and must not block. m.Body is the lane's until then.
// The lane drops what it has stored before (n, id or index tells), and
// refuses what can't follow.
func (l *Lane) Put(m agora.Message, done func(Result)) {
	m.From, m.Session, m.To = l.cfg.From, l.cfg.Session, l.cfg.To
	it := item{m: m, done: done, size: len(m.Body)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gather(&it)
	if l.state == active {
		l.advance()
	} else {
		l.refuseQueue(nil)
		if l.failures.lost.Beyond() { // it could not abort all those streams: a successor reads the log, which knows them
			l.die()
		}
	}
	l.tellLater()
}

// gather adds an item to those of the next record. Where too much has gathered it is refused, once it is its turn.
func (l *Lane) gather(it *item) {
	it.room = record.SizeOf(&it.m)
	if l.queue.first != nil && l.queued+it.room > l.b.cfg.LaneBytes {
		it.lost, it.m.Body, it.room = true, nil, it.room-it.size
	}
	if l.queue.first == nil || len(l.queue.last.items) == record.MaxParts {
		l.queue.push(newBatch())
	}
	l.queued += it.room
	l.queue.last.items = append(l.queue.last.items, *it)
}

// Pass says that a number was used up before it got here: it is not waited
// for, if it was refused for the moment. Nothing is stored under it.
func (l *Lane) Pass(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger.Pass(n)
	l.failures.lost.Pass(n)
	if l.inflight != nil {
		l.inflight.pass(n)
	}
}

// Holds reports whether a message with a number was Put whose fate is not told yet.
func (l *Lane) Holds(n uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	has := func(it *item) bool { return it.m.N == n && !it.toldOff() }
	return l.inflight.has(has) || l.queue.has(has)
}

// MayBeOpen reports whether a stream may be open in the log, or become so by what is in hand: then its end is still to be stored, by this lane or by who has it next.
func (l *Lane) MayBeOpen(stream string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != active || !l.history.known || l.ledger.AwaitsEnd(stream) || l.inflight != nil && slices.Contains(l.inflight.aborts, stream) {
		return true
	}
	has := func(it *item) bool { return it.m.Stream == stream }
	return l.inflight.has(has) || l.queue.has(has)
}

// Next returns the number behind the highest that the lane's client is known to have used; 0 where it has used none. Where an earlier holder of the session may
// have used the lane, it has the lane fence and read the log first. It blocks until that is done, and fails when the lane is over, or ctx.
func (l *Lane) Next(ctx context.Context) (uint64, error) {
	for {
		l.mu.Lock()
		switch {
		case l.state.over():
			l.mu.Unlock()
			return 0, errLaneOver
		case l.state == active && l.history.known:
			n := l.ledger.Next()
			l.mu.Unlock()
			return n, nil
		case l.state == active:
			l.startRecovery(false)
		}
		wait := l.completions.wait()
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Stuck reports whether the log can't be reached for longer than an election takes: for what this lane has in
// hand, or for anything. What was put in is tried until it is stored, or refused half a
// minute after the first of it; but whoever has something new to begin does better to be told. It never blocks.
func (l *Lane) Stuck() bool { return l.stuck.Load() || l.b.Lost() }

// waiting returns how long the lane has waited for the log.
func (l *Lane) waiting(now time.Time) time.Duration {
	switch {
	case l.inflight != nil && !l.inflight.first.IsZero():
		return now.Sub(l.inflight.first)
	case l.recovery != nil:
		return now.Sub(l.recovery.since)
	}
	return 0
}

// Flush returns nil once nothing is gathered or in flight and nothing was given up: a clean hand-over.
// It returns an error when the lane died or gave up with parts in hand, or ctx is over.
func (l *Lane) Flush(ctx context.Context) error {
	for {
		l.mu.Lock()
		if l.state == dead || l.failures.gaveUp {
			l.mu.Unlock()
			return errLaneOver
		}
		if l.idle() {
			l.mu.Unlock()
			return nil
		}
		wait := l.completions.wait()
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the lane: what is not stored is answered with UNAVAILABLE. Idempotent.
func (l *Lane) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != ended {
		l.finish(ended)
	}
	l.tellLater()
}

// idle reports whether nothing is in hand.
func (l *Lane) idle() bool {
	return l.queue.first == nil && l.inflight == nil && l.recovery == nil && !l.failures.lost.Any() &&
		!l.ledger.OwesAborts() && l.completions.first == nil && !l.completions.telling
}

// finish answers all that is in hand and stops the lane's goroutine.
func (l *Lane) finish(s laneState) {
	if l.inflight != nil || l.queue.first != nil || l.failures.lost.Any() || l.ledger.OwesAborts() {
		l.failures.gaveUp = true
	}
	if l.recovery != nil {
		l.recovery.cancel()
	}
	l.refuseAll(errLaneOver)
	l.state = s
	if l.inflight != nil {
		l.landed().release()
	}
	l.failures.lost.Clear()
	l.wakeWaiters()
	if s == ended {
		l.b.forgetLane(l)
	}
}

// refuseAll answers what is in flight and what is gathered with UNAVAILABLE. The record itself stays: it may be stored.
func (l *Lane) refuseAll(why error) {
	if f := l.inflight; f != nil {
		refused := newBatch()
		for i := range f.items {
			it := &f.items[i]
			refused.items = append(refused.items, *it)
			refused.items[i].verdict = ledger.Verdict{Err: ledger.Unavailable(why)}
			it.done = nil
			l.ledger.Doubt(&it.m)
		}
		l.completions.push(refused)
	}
	l.refuseQueue(why)
}

// refuseQueue answers what is gathered with UNAVAILABLE while the ledger can't be asked, and remembers what that means for its streams.
func (l *Lane) refuseQueue(why error) {
	for f := l.queue.pop(); f != nil; f = l.queue.pop() {
		for i := range f.items {
			it := &f.items[i]
			if !l.state.over() {
				l.failures.lost.Add(&it.m)
			}
			it.verdict = ledger.Verdict{Err: ledger.Unavailable(why)}
		}
		l.b.count.refusals.Add(uint64(len(f.items)))
		l.completions.push(f)
	}
	l.queued = 0
}

// tellLater has another goroutine tell the senders of what is answered. The lock is held.
func (l *Lane) tellLater() {
	if c := &l.completions; c.first != nil && !c.telling && !c.posted {
		c.posted = true
		l.b.callbacks.post(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.tell()
		})
	}
}

// tell tells the senders of what is answered, in order: one goroutine at a time does. The lock is held, but not while it tells.
func (l *Lane) tell() {
	c := &l.completions
	c.posted = false
	for c.first != nil && !c.telling {
		told := c.batches
		c.batches, c.telling = batches{}, true
		l.mu.Unlock()
		for f := told.pop(); f != nil; f = told.pop() {
			for i := range f.items {
				if it := &f.items[i]; !it.toldOff() {
					it.done(it.result(f.seq))
				}
			}
			f.release()
		}
		l.mu.Lock()
		c.telling = false
	}
	l.wakeWaiters()
}

// wakeWaiters wakes those who wait for the lane to be idle, if it is or never will be.
func (l *Lane) wakeWaiters() {
	if c := &l.completions; len(c.waiters) > 0 && (l.state != active || l.failures.gaveUp || l.idle()) {
		for _, w := range c.waiters {
			close(w)
		}
		c.waiters = nil
	}
}

// Parked is what has to be kept of a lane that was put aside, so that it can go on: a few words in place of a lane.
// The zero value is a lane that was never used.
type Parked struct {
	ledger            ledger.Parked
	lastSeq, fenceSeq uint64
	read              bool // the log has to be read first, as an heir does
}

// Park ends a lane that has nothing in hand and no open stream, and returns what LaneConfig.Parked takes to go on
// with it under the same epoch. It does nothing, and returns false, while there is anything that a lane
// put aside could not answer for: parts in hand, open streams, numbers that must come again, parts given up.
//
// What is told apart by id or index may be said again within the duplicate window, and the lane must know it then: put aside
// earlier, it reads the log before its next record. That costs, so it is done only where costly is set.
func (l *Lane) Park(costly bool) (Parked, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, all, ok := l.ledger.Park(time.Now(), l.b.cfg.Duplicates)
	if !ok || l.state != active || !l.idle() || l.failures.gaveUp {
		return Parked{}, false
	}
	p := Parked{ledger: kept, lastSeq: l.history.last, fenceSeq: l.fence.seq, read: !l.history.known || !all}
	if p.read && !costly {
		return Parked{}, false
	}
	l.finish(ended)
	return p, true
}
