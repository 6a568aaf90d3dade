package spaces

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// How long the pump waits before it tries again after an error.
const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 5 * time.Second
)

// pull is about how many bytes the pump takes from the inbox at once.
const pull = 256 << 10

// fan is the one upstream of a space at this edge. It reads the space's log
// at a position pos, at which it was opened or to which it has read, and
// hands what it reads to the members that keep up: those in members. Each of
// these has been handed everything up to pos, or began behind it. A member
// that does not keep up leaves; it comes back when its own position is pos or beyond, which is
// checked under mu, under which pos moves: so nothing lies between the two,
// and what the fan hands on next is what the member misses next.
//
// Locks are taken in the order mu, Place.mu; neither is held while the
// broker or a wake is called.
type fan struct {
	hub    *Hub
	to     agora.Address
	ctx    context.Context // over when the fan is closed
	stop   context.CancelFunc
	roster *announcer
	refs   int // places; guarded by hub.mu

	mu      sync.Mutex // guards the fields below
	over    bool
	started bool // the log's end was read, and inbox opened there
	inbox   *broker.Inbox
	pos     uint64    // of the last event that was handed on
	reached uint64    // pos, or a position beyond it with no event between
	tail    uint64    // a position of the log's end that was reached
	tailAt  time.Time // when that was the log's end; zero for never
	members []*Place
	places  map[*Place]struct{} // all of them: members, waiting and lagging ones
	waiting []*Place            // places that came before the start

	handed int64 // bytes that were handed on; the pump's own

	pressed atomic.Int64  // members whose queue is half full
	room    chan struct{} // holds one token when one of them took something

	running sync.Mutex // guards the fields below
	closed  bool
	pumping bool // a pump runs
	again   bool // the pump has something to do
	timer   *time.Timer
	delay   time.Duration // before the next try; 0 when the last one went well
}

// newFan returns a fan without places; closed makes one that never does anything.
func newFan(h *Hub, to agora.Address, closed bool) *fan {
	f := &fan{hub: h, to: to, roster: newAnnouncer(), closed: closed, over: closed, room: make(chan struct{}, 1), places: map[*Place]struct{}{}}
	f.ctx, f.stop = context.WithCancel(h.ctx)
	return f
}

// close ends the fan. The pump, if one runs, ends soon after; the hub waits for it.
func (f *fan) close() {
	f.running.Lock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.running.Unlock()
	f.stop()
	f.mu.Lock()
	f.over = true
	inbox := f.inbox
	f.mu.Unlock()
	if inbox != nil {
		inbox.Close()
	}
}

// wake makes the pump look. It runs only while there is something: a quiet space has no goroutine.
func (f *fan) wake() {
	f.running.Lock()
	defer f.running.Unlock()
	if f.closed {
		return
	}
	f.again = true
	if !f.pumping {
		f.pumping = true
		f.hub.pumps.Go(f.pump)
	}
}

// pump reads until there is nothing to read, and whenever it was woken meanwhile.
func (f *fan) pump() {
	for f.goOn() {
		err := f.drain()
		f.settle(err)
	}
}

// goOn tells whether the pump has something to do; it ends if not.
func (f *fan) goOn() bool {
	f.running.Lock()
	defer f.running.Unlock()
	f.pumping = f.again && !f.closed
	f.again = false
	return f.pumping
}

// settle has the pump run again after a moment when it met an error.
func (f *fan) settle(err error) {
	f.running.Lock()
	defer f.running.Unlock()
	switch {
	case err == nil:
		f.delay = 0
	case f.closed:
	default:
		if f.delay == 0 {
			f.hub.cfg.Log.Warn("reading a space", "space", f.to.Space, "err", err)
		}
		f.delay = min(max(2*f.delay, firstDelay), lastDelay)
		f.timer = time.AfterFunc(f.delay, f.wake)
	}
}

// drain hands on what the inbox has until it has nothing.
func (f *fan) drain() error {
	inbox, err := f.start()
	if err != nil {
		return err
	}
	for {
		// What the tail counts was read or queued before Next: when that has
		// nothing, all of it was handed on.
		tail, at := inbox.Tail()
		ms, err := inbox.Next(f.ctx, pull)
		if err != nil {
			return err
		}
		if len(ms) == 0 {
			f.reach(tail, at)
			return nil
		}
		f.handAll(newEvents(ms, inbox.Stamp()))
	}
}

// start opens the inbox at the log's end, once, and returns it. The pump calls it.
func (f *fan) start() (*broker.Inbox, error) {
	f.mu.Lock()
	inbox := f.inbox
	f.mu.Unlock()
	if inbox != nil {
		return inbox, nil
	}
	at := f.hub.cfg.Broker.Now()
	seq, err := f.hub.cfg.Broker.Last(f.ctx, f.to)
	if err != nil {
		return nil, err
	}
	inbox = f.hub.cfg.Broker.Listen(f.to, broker.From{After: seq, Tail: seq, TailAt: at}, f.wake)
	f.mu.Lock()
	f.inbox = inbox
	over := f.over
	f.mu.Unlock()
	if over {
		inbox.Close()
	}
	f.open(seq, at)
	return inbox, nil
}
