package spaces

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/pump"
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
	pump   pump.Pump // reads the log and hands on
	refs   int       // places; guarded by hub.mu

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
}

// newFan returns a fan without places; closed makes one that never does anything.
func newFan(h *Hub, to agora.Address, closed bool) *fan {
	f := &fan{hub: h, to: to, roster: newAnnouncer(), over: closed, room: make(chan struct{}, 1), places: map[*Place]struct{}{}}
	f.ctx, f.stop = context.WithCancel(h.ctx)
	f.pump.Work, f.pump.Failed, f.pump.LastDelay, f.pump.All = f.drain, f.failed, lastDelay, &h.pumps
	if closed {
		f.pump.Close()
	}
	return f
}

// close ends the fan. The pump, if one runs, ends soon after; the hub waits for it.
func (f *fan) close() {
	f.pump.Close()
	f.stop()
	f.mu.Lock()
	f.over = true
	inbox := f.inbox
	f.mu.Unlock()
	if inbox != nil {
		inbox.Close()
	}
}

// lastDelay is the longest that the pump waits before it reads again after an error.
const lastDelay = 5 * time.Second

// failed tells the log that the space can't be read for the moment, once.
func (f *fan) failed(err error, again time.Duration) {
	if again == pump.FirstDelay {
		f.hub.cfg.Log.Warn("reading a space", "space", f.to.Space, "err", err)
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
	inbox = f.hub.cfg.Broker.Listen(f.to, broker.From{After: seq, Tail: seq, TailAt: at}, f.pump.Wake)
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
