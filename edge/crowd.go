package edge

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

// Guest is a connection as the crowd sees it.
type Guest interface {
	// Held returns the bytes that the edge keeps for it at the moment, and whether
	// it is at work: then it may come to hold more before its seat is stirred again. It must not block.
	Held() (bytes int64, working bool)
	Close(Reason) // as of a Conn
}

// CrowdConfig bounds a Crowd.
type CrowdConfig struct {
	Connections int             // that may be there at once; as many as the process may open files for, with room to spare
	Queued      int64           // bytes kept for all of them together; 256 MiB
	Others      func() int64    // bytes kept for nobody in particular, or for who has gone; may be nil
	Squeeze     func(share int) // told how much of its usual bound each queue may hold, in parts of Whole; may be nil
}

// Whole is the share of a queue's usual bound while the edge holds little.
const Whole = 64

// Crowd is the connections of one edge, whatever their door, in the order in
// which they came, and what the edge holds for all of them together. Half way
// to the limit queues shrink: what they don't take stays in the log, and
// nobody is refused anything. At the limit nobody new is let in, and who came last is
// shed: the further beyond it, the more of them. Half as much beyond it again, they are closed.
//
// It adds up what there is now and then, of those connections that have stirred:
// one that is quiet costs nothing. What a connection does costs one load of an atomic.
type Crowd struct {
	cfg   CrowdConfig
	shed  atomic.Uint64 // seats from this number on are shed
	share atomic.Int64
	held  atomic.Int64
	count CrowdStats

	mu     sync.Mutex // guards the fields below
	newest *Seat      // of those that are taken, which are linked in the order of their numbers; nil where none is
	taken  int        // how many are
	next   uint64     // number of the next seat
	shut   error      // why nobody is let in any more
	lively []*Seat    // those that have stirred: the only ones that may hold anything
}

// CrowdStats counts what a Crowd refused. All fields may be read at any time.
type CrowdStats struct {
	Connections atomic.Int64 // not let in
	Messages    atomic.Int64 // refused
	Slowed      atomic.Int64 // parts of streams that were made to wait
	Closed      atomic.Int64 // connections closed
}

// NewCrowd returns a Crowd that nobody is in.
func NewCrowd(cfg CrowdConfig) *Crowd {
	if cfg.Connections == 0 {
		cfg.Connections = roomForConnections()
	}
	if cfg.Queued == 0 {
		cfg.Queued = 256 << 20
	}
	c := &Crowd{cfg: cfg}
	c.shed.Store(math.MaxUint64)
	c.share.Store(Whole)
	return c
}

// Seat is one connection's place in a Crowd.
type Seat struct {
	crowd   *Crowd
	number  uint64
	before  *Seat // guarded by crowd.mu, like the next two: the one that was taken before it
	after   *Seat
	guest   Guest       // nil until Sit, and after Leave
	left    bool        // guarded by crowd.mu
	closed  bool        // the ticker's own: it was told to close
	stirred atomic.Bool // it is among the lively
}

// Enter lets a connection in; it is UNAVAILABLE when there are too many, when
// the edge holds too much, or when the crowd is shut. The caller owes a call of Leave.
func (c *Crowd) Enter() (*Seat, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	switch {
	case c.shut != nil:
		err = c.shut
	case c.taken >= c.cfg.Connections:
		err = errCrowded
	case c.held.Load() >= c.cfg.Queued:
		err = errBusy
	}
	if err != nil {
		c.count.Connections.Add(1)
		return nil, err
	}
	s := &Seat{crowd: c, number: c.next, before: c.newest}
	if c.newest != nil {
		c.newest.after = s
	}
	c.newest = s
	c.next++
	c.taken++
	return s, nil
}

// Shut lets nobody in from now on; err says why.
func (c *Crowd) Shut(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = err
}

// Sit says who has the seat: from now on it is counted, and may be closed.
func (s *Seat) Sit(g Guest) {
	s.crowd.mu.Lock()
	s.guest = g
	s.crowd.mu.Unlock()
	s.Stir()
}

// Stir has the guest looked at until it holds nothing and is not at work. A guest calls
// it once it has begun to work, or holds something. A connection without a seat may call it, too.
func (s *Seat) Stir() {
	if s == nil || s.stirred.Load() || s.stirred.Swap(true) {
		return
	}
	s.crowd.mu.Lock()
	defer s.crowd.mu.Unlock()
	s.crowd.lively = append(s.crowd.lively, s)
}

// Leave gives the seat back. Idempotent.
func (s *Seat) Leave() {
	c := s.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.left {
		return
	}
	if s.before != nil {
		s.before.after = s.after
	}
	if s.after != nil {
		s.after.before = s.before
	} else {
		c.newest = s.before
	}
	s.before, s.after, s.guest, s.left = nil, nil, nil, true
	c.taken--
}

// Shed tells whether the connection is to be given less than it asks for. A
// connection without a seat never is.
func (s *Seat) Shed() bool { return s != nil && s.number >= s.crowd.shed.Load() }

// Share returns how much of its usual bound a queue may hold, in parts of Whole.
func (c *Crowd) Share() int { return int(c.share.Load()) }

// Held returns how many bytes the edge held when it last looked.
func (c *Crowd) Held() int64 { return c.held.Load() }

// Limits returns how many connections there may be, and how many bytes may be held.
func (c *Crowd) Limits() (connections int, queued int64) { return c.cfg.Connections, c.cfg.Queued }

// Stats returns the counters. They go on counting.
func (c *Crowd) Stats() *CrowdStats { return &c.count }

// What is told to who is not let in, and to who is closed.
var (
	errCrowded = &agora.Error{Code: agora.Unavailable, Message: "the edge has as many connections as it can take", RetryAfter: shedRetry}
	errBusy    = &agora.Error{Code: agora.Unavailable, Message: "the edge holds as much as it can", RetryAfter: shedRetry}
	tooMuch    = Reason{Cause: Shed, Text: "the edge holds more than it can: try again later"}
)

// shedRetry is when it makes sense to try again.
const shedRetry = time.Second
