package admission

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

// Sheddable is a connection as a Shedder sees it.
type Sheddable interface {
	// Held returns the bytes that the edge keeps for it at the moment, and whether
	// it is at work: then it may come to hold more before its slot is marked active again. It must not block.
	Held() (bytes int64, working bool)
	// Shed closes it, as the edge holds more than it can. It must not block.
	Shed()
}

// ShedderConfig bounds a Shedder.
type ShedderConfig struct {
	Connections  int             // that may be there at once; as many as the process may open files for, with room to spare
	Queued       int64           // bytes kept for all of them together; 256 MiB
	Kept         func(*Tally)    // adds up the bytes that are kept beside those of connections; may be nil
	ShrinkQueues func(share int) // told how much of its usual bound each queue may hold, in parts of FullShare; may be nil
	Shared       SharedAddress   // addresses that many clients share; none if nil
}

// FullShare is the share of a queue's usual bound while the edge holds little.
const FullShare = 64

// Shedder sheds load. A principal that holds more than its share is shed before anybody else, and what is kept for one
// tenant alone counts no more for others than its share: see [Tally]. It has the connections of one edge, whatever
// their door, in the order in which they came, and what the edge holds for all of them together. Half way to the limit
// queues shrink: what they don't take stays in the log, and nobody is refused anything. At the limit no new connection
// is let in, and those that came last are shed: the further beyond it, the more of them. Half as much beyond it again,
// they are closed.
//
// It samples what there is now and then, of the connections that are active: a quiet one costs nothing. What a
// connection does costs one load of an atomic.
type Shedder struct {
	cfg       ShedderConfig
	strangers *Strangers    // those that are not let in yet
	shed      atomic.Uint64 // slots from this number on are shed
	share     atomic.Int64
	held      atomic.Int64
	full      atomic.Bool                 // as much is held as may be
	shuts     atomic.Pointer[agora.Error] // why no newcomer would be let in; nil while one would
	count     ShedderStats

	mu      sync.Mutex       // guards the fields below
	newest  *Slot            // of those that are used, which are linked in the order of their numbers; nil where none is
	used    int              // how many are
	next    uint64           // number of the next slot
	shut    error            // why nobody is let in any more
	active  []*Slot          // the only ones that may hold anything
	parties map[Owner]*party // of the slots that are used
}

// ShedderStats counts what a Shedder refused. All fields may be read at any time.
type ShedderStats struct {
	Connections atomic.Int64 // not let in
	Messages    atomic.Int64 // refused
	Slowed      atomic.Int64 // parts of streams that were made to wait
	Closed      atomic.Int64 // connections closed
}

// defaultQueued is limits.queued where nothing else is said.
const defaultQueued = 256 << 20

// NewShedder returns a Shedder without connections.
func NewShedder(cfg ShedderConfig) *Shedder {
	if cfg.Connections == 0 {
		cfg.Connections = roomForConnections()
	}
	if cfg.Queued == 0 {
		cfg.Queued = defaultQueued
	}
	s := &Shedder{cfg: cfg, parties: map[Owner]*party{}}
	s.shed.Store(math.MaxUint64)
	s.share.Store(FullShare)
	s.strangers = NewStrangers(StrangersConfig{Bytes: max(cfg.Queued/strangersPart, leastForStrangers), Share: s.Share, Shared: cfg.Shared})
	return s
}

const (
	strangersPart     = 16        // part of Queued that strangers may hold besides
	leastForStrangers = 256 << 10 // that they may hold however little that is
)

// Strangers returns the budget of those who have shown no credentials yet. It is a sixteenth of what the edge may hold,
// and counts besides that.
func (s *Shedder) Strangers() *Strangers { return s.strangers }

// Slot is one connection's place in a Shedder.
type Slot struct {
	shedder *Shedder
	number  uint64
	party   *party // of its principal; nil where nobody has asked who that is
	before  *Slot  // guarded by shedder.mu, like the next two: the one that was acquired before it
	after   *Slot
	conn    Sheddable   // nil until Attach, and after Release
	left    bool        // guarded by shedder.mu
	closed  bool        // the sampler's own: it was told to close
	active  atomic.Bool // it is among the active ones
}

// Acquire lets a connection in; it is UNAVAILABLE when there are too many, when
// the edge holds too much, or when the shedder is shut. The caller owes a call of Release.
func (s *Shedder) Acquire() (*Slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayEnter(); err != nil {
		return nil, err
	}
	slot := &Slot{shedder: s, number: s.next, before: s.newest}
	if s.newest != nil {
		s.newest.after = slot
	}
	s.newest = slot
	s.next++
	s.used++
	return slot, nil
}

// MayEnter returns why Acquire would let nobody in now; nil where it would.
func (s *Shedder) MayEnter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mayEnter()
}

// mayEnter is MayEnter. mu is held.
func (s *Shedder) mayEnter() (err error) {
	switch {
	case s.shut != nil:
		err = s.shut
	case s.used >= s.cfg.Connections:
		err = errTooManyConnections
	default:
		err = s.Full()
	}
	if err != nil {
		s.count.Connections.Add(1)
	}
	return err
}

// Full returns UNAVAILABLE while the edge holds as much as it can, else nil.
func (s *Shedder) Full() error {
	if s.full.Load() {
		return errFull
	}
	return nil
}

// Ready returns nil while a newcomer would be let in, else why not. Once it does not, it does again when an eighth of
// what was lacking is free: so it does not change to and fro. It is right within a quarter of a second.
func (s *Shedder) Ready() error {
	if err := s.shuts.Load(); err != nil {
		return err
	}
	return nil
}

// setReady decides whether a newcomer would be let in, where so much counts as held.
func (s *Shedder) setReady(held int64) {
	used, was := s.size(), s.shuts.Load()
	room := func(have, most int64) bool {
		return have < most && (was == nil || have <= shareOf(most, roomAgain-1, roomAgain))
	}
	switch {
	case !room(held, s.cfg.Queued):
		s.shuts.Store(errFull)
	case !room(int64(used), int64(s.cfg.Connections)):
		s.shuts.Store(errTooManyConnections)
	default:
		s.shuts.Store(nil)
	}
}

// roomAgain is the part of a limit that must be free before an edge that had no room is ready again.
const roomAgain = 8

// Shut lets no connection in from now on; err says why.
func (s *Shedder) Shut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = err
}

// Attach says which connection has the slot: from now on it is sampled, and may be closed.
func (s *Slot) Attach(c Sheddable) {
	s.shedder.mu.Lock()
	s.conn = c
	s.shedder.mu.Unlock()
	s.MarkActive()
}

// MarkActive has the connection sampled until it holds nothing and is not at work. A connection calls
// it once it has begun to work, or holds something. One without a slot may call it, too.
func (s *Slot) MarkActive() {
	if s == nil || s.active.Load() || s.active.Swap(true) {
		return
	}
	s.shedder.mu.Lock()
	defer s.shedder.mu.Unlock()
	s.shedder.active = append(s.shedder.active, s)
}

// Release gives the slot back. Idempotent.
func (s *Slot) Release() {
	of := s.shedder
	of.mu.Lock()
	defer of.mu.Unlock()
	if s.left {
		return
	}
	if s.before != nil {
		s.before.after = s.after
	}
	if s.after != nil {
		s.after.before = s.before
	} else {
		of.newest = s.before
	}
	s.disown()
	s.before, s.after, s.conn, s.left = nil, nil, nil, true
	of.used--
}

// Shedding reports whether the connection is to be given less than it asks for. A
// connection without a slot never is.
func (s *Slot) Shedding() bool {
	return s != nil && (s.number >= s.shedder.shed.Load() || s.ofParty())
}

// ofParty reports whether the connection is shed as one of its principal's.
func (s *Slot) ofParty() bool { return s.party != nil && s.number >= s.party.shed.Load() }

// slowed is how long a part of a stream waits while its sender is shed.
const slowed = 200 * time.Millisecond

// Throttle gives the edge a rest while it sheds the connection: of its messages a whole one is refused, UNAVAILABLE,
// and what goes into a stream waits. What ends a stream lets go of something, and passes.
func (s *Slot) Throttle(part agora.Part) (wait time.Duration, err error) {
	if !s.Shedding() {
		return 0, nil
	}
	switch part {
	case agora.Whole:
		s.shedder.count.Messages.Add(1)
		if s.ofParty() {
			return 0, errPartyFull
		}
		return 0, errFull
	case agora.Start, agora.Chunk:
		s.shedder.count.Slowed.Add(1)
		return slowed, nil
	}
	return 0, nil
}

// Share returns how much of its usual bound a queue for the connection may hold, in parts of FullShare; all of it where
// s is nil.
func (s *Slot) Share() int {
	if s == nil {
		return FullShare
	}
	return s.shedder.Share()
}

// Share returns how much of its usual bound a queue may hold, in parts of FullShare.
func (s *Shedder) Share() int { return int(s.share.Load()) }

// Held returns how many bytes the edge held when it was sampled last.
func (s *Shedder) Held() int64 { return s.held.Load() }

// Limits returns how many connections there may be, and how many bytes may be held.
func (s *Shedder) Limits() (connections int, queued int64) { return s.cfg.Connections, s.cfg.Queued }

// Stats returns the counters. They go on counting.
func (s *Shedder) Stats() *ShedderStats { return &s.count }

// What is told to a connection that is not let in.
var (
	errTooManyConnections = &agora.Error{Code: agora.Unavailable, Message: "the edge has as many connections as it can take", RetryAfter: shedRetry}
	errOver               = &agora.Error{Code: agora.Unavailable, Message: "the request is over", RetryAfter: shedRetry}
	errFull               = &agora.Error{Code: agora.Unavailable, Message: "the edge holds as much as it can", RetryAfter: shedRetry}
)

// shedRetry is when it makes sense to try again.
const shedRetry = time.Second
