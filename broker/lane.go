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
// again, with the same message or another. So a client whose n was refused continues from n.
type Lane struct {
	b       *Broker
	cfg     LaneConfig
	at      jslog.Location
	stream  *watcher // of the stream that keeps its records
	subject string   // of its records
	origin  int      // what a record says of the lane takes, at most
	number  uint64   // by which the answers to its records find it

	stuck atomic.Bool // what is in hand waits for longer than an election takes

	mu          sync.Mutex // guards the fields below
	state       laneState
	ledger      ledger.Ledger
	fence       laneFence
	history     laneHistory
	queue       batches  // that gather for the next records
	queued      int      // bytes that they take in records, at most
	turn        laneTurn // whether the next record waits for those of other lanes
	pace        lanePace // at which records go
	inflight    *batch   // on its way, or of unknown fate; nil when there is none
	completions completions
	recovery    *recovery // the goroutine that asks the log where the lane stands; nil when there is none
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
	known bool   // the log was read once: the ledger is complete, and nothing of an earlier holder can be stored any more
	last  uint64 // sequence of the last record of the lane that the ledger reckons with
}

// laneFailures are what the lane has refused for the moment, and makes good.
type laneFailures struct {
	gaveUp  bool      // parts were answered UNAVAILABLE that may have been stored, or whose stream could not be aborted
	abortAt time.Time // when to try next to store what is owed to streams over a hole
}

// laneState is how a lane stands with the log.
type laneState uint8

const (
	laneActive    laneState = iota // it sends; nothing is in doubt, but that an earlier holder may have used it
	laneRecovers                   // it asks the log where it stands; what comes gathers
	laneSuspended                  // it still asks, too long for those who wait: what comes is refused at once
	laneDead                       // a younger epoch holds it, or it can't continue
	laneEnded                      // Close or Park was called
	laneStates
)

// laneEvent is what happens to a lane.
type laneEvent uint8

const (
	laneDoubts    laneEvent = iota // the fate of a record, or what an earlier holder has stored, is not known
	laneGivesUp                    // the log takes too long to say, or is full
	laneLearns                     // the log has said where the lane stands
	laneIsDeposed                  // a younger epoch holds the lane, or it has lost more streams than it can abort
	laneCloses                     // it is put aside, or over
	laneEvents
)

// laneNext is the life of a lane: what each event makes of it.
var laneNext = [laneStates][laneEvents]laneState{
	//               doubts         gives up       learns      is deposed  closes
	laneActive:    {laneRecovers, laneActive, laneActive, laneDead, laneEnded},
	laneRecovers:  {laneRecovers, laneSuspended, laneActive, laneDead, laneEnded},
	laneSuspended: {laneSuspended, laneSuspended, laneActive, laneDead, laneEnded},
	laneDead:      {laneDead, laneDead, laneDead, laneDead, laneEnded},
	laneEnded:     {laneEnded, laneEnded, laneEnded, laneEnded, laneEnded},
}

func (s laneState) String() string {
	return [...]string{"active", "recovers", "suspended", "dead", "ended"}[s]
}

// asks reports whether a goroutine of the lane's asks the log.
func (s laneState) asks() bool { return s == laneRecovers || s == laneSuspended }

// refuses reports whether the lane refuses what comes.
func (s laneState) refuses() bool { return s >= laneSuspended }

// over reports whether the lane takes nothing more.
func (s laneState) over() bool { return s >= laneDead }

// hears moves the lane on by an event, and reports whether that changes it. The lock is held.
func (l *Lane) hears(e laneEvent) (changes bool) {
	was := l.state
	l.state = laneNext[was][e]
	return l.state != was
}

var errLaneOver = errors.New("the lane is over")

// Lane returns a new lane. Nothing is sent before the first Put.
func (b *Broker) Lane(cfg LaneConfig) *Lane {
	l := &Lane{b: b, cfg: cfg, at: jslog.Locate(cfg.To, b.cfg.Shards)}
	l.stream, l.subject, l.fence.subject = b.watchers[l.at.Stream], l.at.Log(), l.at.Fence(cfg.Session)
	l.origin = record.OriginSize(record.Origin{Session: cfg.Session, From: cfg.From})
	l.ledger, l.history = ledger.New(!cfg.Used), laneHistory{known: !cfg.Used}
	if p := cfg.Parked; p != nil { // it continues where it was put aside
		l.ledger, l.fence.seq, l.history = p.ledger.Unpark(), p.fenceSeq, laneHistory{known: !p.read, last: p.lastSeq}
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
// refuses what can't follow, and what comes when too much has gathered.
func (l *Lane) Put(m agora.Message, done func(Result)) {
	m.From, m.Session, m.To = l.cfg.From, l.cfg.Session, l.cfg.To
	it := item{m: m, done: done, size: len(m.Body), room: record.SizeOf(&m)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.first != nil && l.queued+it.room > l.b.cfg.LaneBytes { // it is refused once its turn comes
		it.lost, it.m.Body, it.room = true, nil, it.room-it.size
	}
	if l.queue.first == nil || len(l.queue.last.items) == record.MaxParts {
		l.queue.push(newBatch())
	}
	l.queue.last.items = append(l.queue.last.items, it)
	l.queued += it.room
	if !l.state.refuses() {
		l.advance()
	} else {
		l.refuseQueue(nil)
		if l.ledger.LostTooMuch() { // it could not abort all those streams: a successor reads the log, which knows them
			l.die()
		}
	}
	l.tellLater()
}

// Pass skips number n, which was used up before it reached the lane: the lane no longer waits for its retry. Nothing is
// stored under it.
func (l *Lane) Pass(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger.Pass(n)
	if l.inflight != nil {
		l.inflight.pass(n)
	}
}

// Holds reports whether the lane holds a message with a number that it has not answered.
func (l *Lane) Holds(n uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	has := func(it *item) bool { return it.m.N == n && !it.toldOff() }
	return l.inflight.has(has) || l.queue.has(has)
}

// MayBeOpen reports whether a stream may be open in the log, or become so by a message that the lane holds. Then its
// end is still to be stored, by this lane or by its next holder.
func (l *Lane) MayBeOpen(stream string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.refuses() || !l.history.known || l.ledger.AwaitsEnd(stream) || l.inflight != nil && slices.Contains(l.inflight.aborts, stream) {
		return true
	}
	has := func(it *item) bool { return it.m.Stream == stream }
	return l.inflight.has(has) || l.queue.has(has)
}

// Next returns the number behind the highest that the lane's client is known to have used; 0 when it has used none.
// When an earlier holder of the session may have used the lane, the lane fences and reads the log first. Next blocks
// until then; it fails when the lane or ctx is over.
func (l *Lane) Next(ctx context.Context) (uint64, error) {
	for {
		l.mu.Lock()
		switch {
		case l.state.over():
			l.mu.Unlock()
			return 0, errLaneOver
		case l.state != laneSuspended && l.history.known:
			n := l.ledger.Next()
			l.mu.Unlock()
			return n, nil
		default:
			l.startRecovery(false)
		}
		if err := l.unlockAndWait(ctx); err != nil {
			return 0, err
		}
	}
}

// Stuck reports whether the log has been away for longer than an election takes: for this lane's messages, or for all.
// The lane tries to store its messages until it gives up, half a minute after the first of them; but a caller that
// would begin something new should refuse it now. Stuck never blocks.
func (l *Lane) Stuck() bool { return l.stuck.Load() || l.b.Lost() }

// Flush returns nil once nothing is gathered or in flight and nothing was given up: a clean hand-over.
// It returns an error when the lane died or gave up with parts in hand, or ctx is over.
func (l *Lane) Flush(ctx context.Context) error {
	for {
		l.mu.Lock()
		if l.state == laneDead || l.failures.gaveUp {
			l.mu.Unlock()
			return errLaneOver
		}
		if l.idle() {
			l.mu.Unlock()
			return nil
		}
		if err := l.unlockAndWait(ctx); err != nil {
			return err
		}
	}
}

// Close ends the lane and answers what is not stored with UNAVAILABLE. It is idempotent.
func (l *Lane) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finish(laneCloses)
	l.tellLater()
}

// idle reports whether nothing is in hand.
func (l *Lane) idle() bool {
	return l.queue.first == nil && l.inflight == nil && !l.state.asks() && !l.ledger.Unsettled() &&
		!l.ledger.OwesAborts() && l.completions.first == nil && !l.completions.telling
}

// finish ends the lane: it answers all that the lane holds, and stops its goroutine.
func (l *Lane) finish(e laneEvent) {
	if l.state == laneEnded {
		return
	}
	if l.inflight != nil || l.queue.first != nil || l.ledger.Unsettled() || l.ledger.OwesAborts() {
		l.failures.gaveUp = true
	}
	if l.recovery != nil {
		l.recovery.cancel()
	}
	l.refuseAll(errLaneOver)
	l.hears(e)
	if l.inflight != nil {
		l.landed().release()
	}
	l.wakeWaiters()
	if l.state == laneEnded {
		l.b.forgetLane(l)
	}
}

// refuseAll answers the items in flight and those that gather with UNAVAILABLE. The record in flight stays: it may be
// stored.
func (l *Lane) refuseAll(why error) {
	if f := l.inflight; f != nil {
		refused := newBatch()
		for i := range f.items {
			it := &f.items[i]
			refused.items = append(refused.items, *it)
			refused.items[i].verdict = ledger.Verdict{Err: ledger.Unavailable(why)}
			if it.done = nil; it.verdict.Store {
				l.ledger.Doubt(&it.m)
			}
		}
		l.completions.push(refused)
	}
	l.refuseQueue(why)
}

// refuseQueue answers the items that gather with UNAVAILABLE while the ledger can't be asked, and remembers what that
// means for their streams.
func (l *Lane) refuseQueue(why error) {
	for f := l.queue.pop(); f != nil; f = l.queue.pop() {
		for i := range f.items {
			it := &f.items[i]
			if !l.state.over() {
				l.ledger.LoseLater(&it.m)
			}
			it.verdict = ledger.Verdict{Err: ledger.Unavailable(why)}
		}
		l.b.count.refusals.Add(uint64(len(f.items)))
		l.completions.push(f)
	}
	l.queued = 0
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
// What is told apart by id or index may be said again within the duplicate window, and the lane must know it then: put
// aside earlier, it reads the log before its next record. That costs, so it is done only where costly is set.
func (l *Lane) Park(costly bool) (Parked, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, all, ok := l.ledger.Park(time.Now(), l.b.cfg.Duplicates)
	if !ok || l.state != laneActive || !l.idle() || l.failures.gaveUp {
		return Parked{}, false
	}
	p := Parked{ledger: kept, lastSeq: l.history.last, fenceSeq: l.fence.seq, read: !l.history.known || !all}
	if p.read && !costly {
		return Parked{}, false
	}
	l.finish(laneCloses)
	return p, true
}
