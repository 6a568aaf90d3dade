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
	subject string // of its records
	number  string // names the lane in the subjects of acknowledgements

	stuck atomic.Bool // what is in hand waits for longer than an election takes

	mu         sync.Mutex // guards the fields below
	state      laneState
	ledger     ledger.Ledger
	fence      laneFence
	history    laneHistory
	queue      sendQueue       // gathered
	pace       lanePace        // at which records go
	coalescing bool            // its next record waits for those of other lanes
	inflight   *inflightRecord // on its way, or of unknown fate; nil when there is none
	recovery   *recovery       // a goroutine of the lane's that is asking the log; nil when there is none
	failures   laneFailures
	watched    bool // the retrier has the lane
	results    completions
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

// entry is a message on its way into the log.
type entry struct {
	m    agora.Message
	done func(Result)
	size int  // of the body that it came with
	lost bool // refused already, but in its turn: those before it are not answered yet
}

func (e *entry) result() Result { return Result{Stream: e.m.Stream, N: e.m.N, Size: e.size} }

func (e *entry) refused(err *agora.Error) Result {
	r := e.result()
	r.Err = err
	return r
}

// after returns the streams that are open after e, given those before it.
func (e *entry) after(open []OpenStream) []OpenStream {
	if e.lost {
		return open
	}
	return ledger.After(open, &e.m)
}

var errLaneOver = errors.New("the lane is over")

// Lane returns a new lane. Nothing is sent before the first Put.
func (b *Broker) Lane(cfg LaneConfig) *Lane {
	l := &Lane{b: b, cfg: cfg, at: jslog.Locate(cfg.To, b.cfg.Shards)}
	l.subject, l.fence.subject = l.at.Log(), l.at.Fence(cfg.Session)
	l.ledger, l.history = ledger.New(!cfg.Used), laneHistory{known: !cfg.Used, inherited: !cfg.Used}
	if cfg.Parked != nil {
		l.unpark(*cfg.Parked)
		l.cfg.Parked = nil
	}
	b.register(l)
	return l
}

// Put appends m to what the lane sends and returns at once. done is called exactly once, in
// the order of the Puts, on a goroutine of the Broker's, and must not block. m.Body is the lane's until then.
// The lane drops what it has stored before (n, id or index tells), and
// refuses what can't follow.
func (l *Lane) Put(m agora.Message, done func(Result)) {
	m.From, m.Session, m.To = l.cfg.From, l.cfg.Session, l.cfg.To
	e := entry{m: m, done: done, size: len(m.Body)}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.state {
	case active:
		if l.queue.full(record.SizeOf(&m), l.b.cfg.LaneBytes) {
			e.lost, e.m.Body = true, nil
		}
		l.queue.add(&e)
		l.advance()
	case suspended:
		l.refuseLost(&e)
		l.dieIfTooMuchLost()
	default:
		l.results.add(done, e.refused(ledger.Unavailable(errLaneOver)))
	}
	l.deliverLater()
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
	return l.inflight != nil && l.inflight.holds(n) || slices.ContainsFunc(l.queue.items(), func(e entry) bool { return e.m.N == n && !e.lost })
}

// Streams returns the streams that are open after all that was Put so far.
func (l *Lane) Streams() []OpenStream {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := l.ledger.Running()
	if f := l.inflight; f != nil && !f.open {
		for i := range f.items {
			open = f.items[i].after(open)
		}
	}
	for i := range l.queue.items() {
		open = l.queue.entries.all[i].after(open)
	}
	return open
}

// MayBeOpen reports whether a stream may be open in the log, or become so by what is in hand: then its end is still to be stored, by this lane or by who has it next.
func (l *Lane) MayBeOpen(stream string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != active || !l.history.known || l.ledger.AwaitsEnd(stream) {
		return true
	}
	if l.inflight != nil && slices.ContainsFunc(l.inflight.parts, func(m agora.Message) bool { return m.Stream == stream }) {
		return true
	}
	return slices.ContainsFunc(l.queue.items(), func(e entry) bool { return e.m.Stream == stream })
}

// Next returns the number behind the highest that the lane's client is known to have used; 0 where it has used none. Where an earlier holder of the session may
// have used the lane, it has the lane fence and read the log first. It blocks until that is done, and fails when the lane is over, or ctx.
func (l *Lane) Next(ctx context.Context) (uint64, error) {
	for {
		l.mu.Lock()
		switch {
		case l.state == dead || l.state == ended:
			l.mu.Unlock()
			return 0, errLaneOver
		case l.state == active && l.history.known:
			n := l.ledger.Next()
			l.mu.Unlock()
			return n, nil
		case l.state == active:
			l.startRecovery(false)
		}
		wait := l.results.wait()
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

// Pressed makes the lane wait at least pause before each record, so that more gathers; 0 ends it.
func (l *Lane) Pressed(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.pause = pause
	if pause == 0 && l.pace.running() {
		l.pace = lanePace{}
		l.advance()
		l.deliverLater()
	}
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
		wait := l.results.wait()
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
	if l.state != ended {
		l.finish(ended)
		l.b.unregister(l)
	}
	l.deliverLater()
	l.mu.Unlock()
}

// idle reports whether nothing is in hand.
func (l *Lane) idle() bool {
	return l.queue.empty() && l.inflight == nil && l.recovery == nil && !l.failures.lost.Any() &&
		!l.ledger.OwesAborts() && !l.results.any()
}

// finish answers all that is in hand and stops the lane's goroutine.
func (l *Lane) finish(s laneState) {
	if l.inflight != nil || !l.queue.empty() || l.failures.lost.Any() || l.ledger.OwesAborts() {
		l.failures.gaveUp = true
	}
	if l.recovery != nil {
		l.recovery.cancel()
	}
	l.refuseAll(errLaneOver)
	l.state = s
	if l.inflight != nil {
		l.inflight.release()
		l.inflight = nil
	}
	l.failures.lost.Clear()
	l.wakeWaiters()
}

// refuseAll answers what is in flight and what is gathered with UNAVAILABLE. The record itself stays: it may be stored.
func (l *Lane) refuseAll(why error) {
	if l.inflight != nil {
		for i := range l.inflight.items {
			it := &l.inflight.items[i]
			l.results.add(it.done, it.refused(ledger.Unavailable(why)))
			it.done = nil
			l.ledger.Doubt(&it.m)
		}
	}
	for i := range l.queue.items() {
		l.refuseLost(&l.queue.entries.all[i])
	}
	l.queue.clear()
}

// refuseLost answers a part with UNAVAILABLE while the ledger can't be asked, and remembers what
// that means for its stream.
func (l *Lane) refuseLost(e *entry) {
	l.failures.lost.Add(&e.m)
	l.b.count.refusals.Add(1)
	l.results.add(e.done, e.refused(ledger.Unavailable(nil)))
}

// deliverLater has the queued answers given by another goroutine. The lock is held.
func (l *Lane) deliverLater() {
	if l.results.post() {
		l.b.callbacks.post(l.deliver)
	}
}

// deliver gives the queued answers.
func (l *Lane) deliver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results.deliver(&l.mu)
	l.wakeWaiters()
}

// wakeWaiters wakes those who wait for the lane to be idle, if it is or never will be.
func (l *Lane) wakeWaiters() {
	if len(l.results.waiters) > 0 && (l.state != active || l.failures.gaveUp || l.idle()) {
		l.results.wake()
	}
}
