package admission

import (
	"cmp"
	"container/list"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

// StrangersConfig bounds Strangers. The zero value is ready to use.
type StrangersConfig struct {
	Bytes  int64         // of all their unfinished requests together; 16 MiB
	Places int           // requests of strangers that are read or answered at a time; 1024
	Within time.Duration // for a whole request; 20 s
	Share  func() int    // how much of Bytes there is at the moment, in parts of FullShare; all of them if nil
	Shared SharedAddress // addresses that may have all places; none if nil
}

// SharedAddress knows the addresses that many clients share, as those of trusted proxies. It must not block.
type SharedAddress func(netip.Addr) bool

func (c StrangersConfig) withDefaults() StrangersConfig {
	c.Bytes = cmp.Or(c.Bytes, 16<<20)
	c.Places = cmp.Or(c.Places, 1024)
	c.Within = cmp.Or(c.Within, 20*time.Second)
	if c.Share == nil {
		c.Share = func() int { return FullShare }
	}
	if c.Shared == nil {
		c.Shared = func(netip.Addr) bool { return false }
	}
	return c
}

// Strangers is the budget of those who have shown no credentials yet, whatever their door: the unfinished body of a
// request, an unfinished message, an unfinished handoff, what a connection has sent before it was admitted. When the
// budget is full the stranger that has waited longest is ended, and the newcomer is let in. Strangers that hold much go
// before those that hold little, so a short request and a handshake outlast what is large.
//
// The bytes count besides limits.queued, not within it: so strangers never cause the edge to refuse anybody who has
// credentials. While the edge holds much the budget shrinks with the queues, so strangers are ended first.
type Strangers struct {
	cfg   StrangersConfig
	much  int64 // more bytes than that of one stranger are much
	held  atomic.Int64
	count StrangersStats

	mu      sync.Mutex                // guards the fields below, and those of each Stranger that say so
	waiting list.List                 // of *Stranger that have a place, the one that came first in front
	holding [muchHeld + 1]list.List   // of *Stranger by how much they hold, the one that came to do so first in front
	places  map[netip.Addr]*list.List // of *Stranger that have a place, by address
}

// amount is how much a stranger holds.
type amount int

const (
	nothingHeld amount = iota
	littleHeld
	muchHeld
)

// StrangersStats counts strangers. All fields may be read at any time.
type StrangersStats struct {
	Places  atomic.Int64 // taken now
	Entered atomic.Int64 // strangers that took a place, so far
	Evicted atomic.Int64 // ended because others needed their place or their bytes
	Late    atomic.Int64 // ended because their request was not complete in time
}

// littlePart is the part of all bytes up to which a stranger holds little.
const littlePart = 4096

// NewStrangers returns a budget that nobody uses.
func NewStrangers(cfg StrangersConfig) *Strangers {
	cfg = cfg.withDefaults()
	return &Strangers{cfg: cfg, much: max(cfg.Bytes/littlePart, 1), places: map[netip.Addr]*list.List{}}
}

// Stranger is one request, message or stream of somebody who has shown no credentials. Any goroutine may call its
// methods.
type Stranger struct {
	of    *Strangers
	evict func(error)
	held  atomic.Int64
	ended atomic.Pointer[agora.Error] // why it was evicted; nil while it was not

	from    netip.Addr    // by which its place is counted
	late    *time.Timer   // guarded by of.mu, like the fields below; nil for one without a time limit
	place   *list.Element // in waiting; nil where it has none
	own     *list.Element // in the list of its address; nil where it has no place
	amount  amount
	holding *list.Element // in the list of its amount; nil where it holds nothing
	left    bool
}

// Enter gives a stranger a place, and the time that a whole request has. It refuses nobody: where all places are taken,
// the stranger that has waited longest is evicted; where one address has a quarter of all places, one of that address.
// evict learns why the stranger is ended, at most once; it must not block. The caller owes a call of Leave.
func (s *Strangers) Enter(from netip.Addr, evict func(error)) *Stranger {
	g := &Stranger{of: s, evict: evict, from: countedAddress(from)}
	s.count.Entered.Add(1)
	s.mu.Lock()
	out := s.inTheWay(g, s.cfg.Shared(from))
	if out != nil {
		s.endLocked(out, errCrowded)
	}
	if s.places[g.from] == nil {
		s.places[g.from] = list.New()
	}
	g.place, g.own = s.waiting.PushBack(g), s.places[g.from].PushBack(g)
	g.late = time.AfterFunc(s.cfg.Within, g.expire)
	s.count.Places.Add(1)
	s.mu.Unlock()
	s.tell(out)
	return g
}

// addressPart is the part of all places that one address may have.
const addressPart = 4

// inTheWay returns the stranger whose place a newcomer gets; nil where one is free. mu is held.
func (s *Strangers) inTheWay(g *Stranger, shared bool) *Stranger {
	if own := s.places[g.from]; own != nil && !shared && own.Len() >= max(s.cfg.Places/addressPart, 1) {
		return own.Front().Value.(*Stranger)
	}
	if s.waiting.Len() >= s.cfg.Places {
		return s.waiting.Front().Value.(*Stranger)
	}
	return nil
}

// enterConn enters a connection that was not admitted yet, for what it sends. It has no place here and no time limit:
// PendingConns and its server give it both.
func (s *Strangers) enterConn(evict func(error)) *Stranger { return &Stranger{of: s, evict: evict} }

// Hold counts n bytes more that are kept for the stranger, or gives some back where n is negative. Where the budget is
// full it evicts those that have waited longest. It returns why the stranger itself was evicted, now or before: then
// its caller reads no further.
func (g *Stranger) Hold(n int) error {
	s := g.of
	total, own := s.held.Add(int64(n)), g.held.Add(int64(n))
	if s.amountOf(own) != s.amountOf(own-int64(n)) || n > 0 && total > s.budget() {
		s.mu.Lock()
		g.sortLocked()
		evicted := s.fitLocked()
		s.mu.Unlock()
		s.tell(evicted...)
	}
	return g.Err()
}

// amountOf returns how much some bytes are.
func (s *Strangers) amountOf(bytes int64) amount {
	switch {
	case bytes <= 0:
		return nothingHeld
	case bytes <= s.much:
		return littleHeld
	}
	return muchHeld
}

// sortLocked keeps a stranger in the list of its amount. of.mu is held.
func (g *Stranger) sortLocked() {
	now := g.of.amountOf(g.held.Load())
	if g.left || g.ended.Load() != nil {
		now = nothingHeld
	}
	if now == g.amount {
		return
	}
	if g.holding != nil {
		g.of.holding[g.amount].Remove(g.holding)
		g.holding = nil
	}
	if g.amount = now; now != nothingHeld {
		g.holding = g.of.holding[now].PushBack(g)
	}
}

// fitLocked evicts strangers until all bytes fit, and returns those that are to be told. mu is held.
func (s *Strangers) fitLocked() (evicted []*Stranger) {
	for budget := s.budget(); s.held.Load() > budget; {
		first := s.holding[muchHeld].Front()
		if first == nil {
			first = s.holding[littleHeld].Front()
		}
		if first == nil {
			break // they have been told, and let go in a moment
		}
		out := first.Value.(*Stranger)
		s.endLocked(out, errCrowded)
		evicted = append(evicted, out)
	}
	return evicted
}

// endLocked takes an evicted stranger off the account. mu is held.
func (s *Strangers) endLocked(g *Stranger, why *agora.Error) {
	g.ended.Store(why)
	g.offLocked()
}

// offLocked takes a stranger off the account. of.mu is held.
func (g *Stranger) offLocked() {
	s := g.of
	if g.late != nil {
		g.late.Stop()
	}
	if g.place != nil {
		s.waiting.Remove(g.place)
		own := s.places[g.from]
		if own.Remove(g.own); own.Len() == 0 {
			delete(s.places, g.from)
		}
		g.place, g.own = nil, nil
		s.count.Places.Add(-1)
	}
	s.held.Add(-g.held.Swap(0))
	g.sortLocked()
}

// tell tells strangers that they were evicted. mu is not held.
func (s *Strangers) tell(evicted ...*Stranger) {
	for _, g := range evicted {
		if g != nil {
			s.count.Evicted.Add(1)
			g.evict(errCrowded)
		}
	}
}

// Stay ends the time limit, as the whole request has come: its answer may last. The stranger keeps its place, and is
// evicted when that is needed.
func (g *Stranger) Stay() {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	if g.late != nil {
		g.late.Stop()
	}
}

// Err returns why the stranger was evicted; nil while it was not.
func (g *Stranger) Err() error {
	if why := g.ended.Load(); why != nil {
		return why
	}
	return nil
}

// Leave gives place and bytes back: the stranger has shown credentials, was answered, or has gone. Idempotent.
func (g *Stranger) Leave() {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.left = true
	g.offLocked()
}

// expire evicts a stranger whose request did not come in time.
func (g *Stranger) expire() {
	s := g.of
	s.mu.Lock()
	over := g.left || g.ended.Load() != nil
	if !over {
		s.endLocked(g, errSlow)
	}
	s.mu.Unlock()
	if !over {
		s.count.Late.Add(1)
		g.evict(errSlow)
	}
}

// shrink evicts strangers until they fit into what is left to them, as the edge holds much for others.
func (s *Strangers) shrink() {
	if s.held.Load() <= s.budget() {
		return
	}
	s.mu.Lock()
	evicted := s.fitLocked()
	s.mu.Unlock()
	s.tell(evicted...)
}

// budget is how many bytes strangers may hold at the moment.
func (s *Strangers) budget() int64 { return s.cfg.Bytes * int64(s.cfg.Share()) / FullShare }

// Held returns the bytes that strangers hold.
func (s *Strangers) Held() int64 { return s.held.Load() }

// Limits returns how many bytes strangers may hold while the edge holds little, how many places they have, and how long
// a request of theirs may take.
func (s *Strangers) Limits() (bytes int64, places int, within time.Duration) {
	return s.cfg.Bytes, s.cfg.Places, s.cfg.Within
}

// Stats returns the counters. They go on counting.
func (s *Strangers) Stats() *StrangersStats { return &s.count }

// What is told to a stranger that is evicted.
var (
	errCrowded = &agora.Error{Code: agora.Unavailable, Message: "too many requests without credentials are unfinished at this edge", RetryAfter: shedRetry}
	errSlow    = &agora.Error{Code: agora.Timeout, Message: "a request without credentials did not come in time"}
)
