package spaces

import (
	"context"
	"slices"
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

// patience is how long the fan waits at most for most of its members.
const patience = 100 * time.Millisecond

// open gives the fan its first position, which was the log's end at a time,
// and settles the places that wait for it.
func (f *fan) open(seq uint64, at time.Time) {
	f.mu.Lock()
	f.started, f.pos, f.reached, f.tail, f.tailAt = true, seq, seq, seq, at
	waiting := f.waiting
	f.waiting = nil
	for _, p := range waiting {
		f.arrive(p)
	}
	f.mu.Unlock()
	for _, p := range waiting {
		p.wake()
	}
}

// handAll hands events on in pieces that leave the members' queues room to breathe.
func (f *fan) handAll(events []*Event) {
	for len(events) > 0 && f.ctx.Err() == nil {
		n, size := 0, 0
		for n < len(events) && (n == 0 || size+events[n].size() <= f.hub.room()/4) {
			size += events[n].size()
			n++
		}
		f.breathe(f.hand(events[:n:n]))
		events = events[n:]
	}
}

// breathe waits, at most for patience, while most of the members' queues are half full.
// A member that is slow leaves the fan when its queue is full; but when the
// edge as a whole can't keep up, all of them would, and each would read the log for
// itself. So then the fan reads slower, which costs nobody anything: what it
// has not read stays in the log.
func (f *fan) breathe(members int) {
	if !f.crowded(members) {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for f.crowded(members) {
		select {
		case <-f.room:
		case <-timer.C:
			return
		case <-f.ctx.Done():
			return
		}
	}
}

// crowded reports whether most of the members' queues are half full.
func (f *fan) crowded(members int) bool { return f.pressed.Load()*2 > int64(members) }

// hand gives events, in order and beyond pos, to every member, and returns
// how many members stayed. Only the pump calls it.
func (f *fan) hand(events []*Event) (members int) {
	size := 0
	for _, e := range events {
		size += e.size()
		f.handed += int64(e.size())
		e.ends = f.handed
	}
	var woken *Place // a list through the places themselves: nothing is allocated
	f.mu.Lock()
	for i := len(f.members) - 1; i >= 0; i-- { // backwards: leave puts the last one in the place of i
		p := f.members[i]
		if p.put(events, size) {
			p.nextWoken, woken = woken, p
		}
	}
	f.pos = max(f.pos, events[len(events)-1].Seq)
	f.reached = max(f.reached, f.pos)
	members = len(f.members)
	f.mu.Unlock()
	for woken != nil {
		p := woken
		woken, p.nextWoken = p.nextWoken, nil
		p.wake()
	}
	return members
}

// reach notes that everything up to tail was handed on, which was the log's
// end at a time. A record is stored as a whole, so that holds for the rest of the last one too.
func (f *fan) reach(tail uint64, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reached = max(wholeRecord(f.pos), tail)
	if at.After(f.tailAt) {
		f.tail, f.tailAt = tail, at
	}
}

// wholeRecord returns the last position that a record can have which has the position seq.
func wholeRecord(seq uint64) uint64 {
	if seq == 0 {
		return 0
	}
	return seq | (1<<agora.SeqShift - 1)
}

// join makes p, which is outside, a member; f.mu and p.mu are held.
func (f *fan) join(p *Place) {
	p.at = len(f.members)
	f.members = append(f.members, p)
	p.pos.sure = true
	p.hears(placeJoins)
}

// leave takes p out of the members, if it is one; f.mu is held.
func (f *fan) leave(p *Place) {
	if p.at == outside {
		return
	}
	last := len(f.members) - 1
	f.members[p.at] = f.members[last]
	f.members[p.at].at = p.at
	f.members[last] = nil
	f.members = f.members[:last]
	p.at = outside
}

// forget takes p out permanently.
func (f *fan) forget(p *Place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.places, p)
	f.leave(p)
	if i := slices.Index(f.waiting, p); i >= 0 {
		f.waiting = slices.Delete(f.waiting, i, i+1)
	}
}

// hold lets p gather what is handed on from now, until its begin says from where it wants it.
func (f *fan) hold(p *Place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	f.places[p] = struct{}{}
	if !f.started {
		f.waiting = append(f.waiting, p)
		return
	}
	f.gather(p)
}

// gather makes p a member at the fan's position; both locks are held.
func (f *fan) gather(p *Place) {
	p.pos.seq, p.heldFrom = f.pos, f.pos
	f.join(p)
}

// arrive makes p, which came before the start, a member if the start is where
// it begins; f.mu is held.
func (f *fan) arrive(p *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state == placeClosed:
	case p.state == placeGathers || p.state == placeWaits:
		f.gather(p)
	case f.fits(p):
		f.join(p)
	default:
		p.unheard.Store(true)
	}
}

// fits reports whether the fan has started and nothing lies between p's position and the fan's. f.mu and p.mu are held.
func (f *fan) fits(p *Place) bool { return f.started && p.pos.reaches(f.pos) }

// rejoin makes a lagging p a member if nothing lies between its position and the fan's. It reports whether p is one
// then: the fan's start may have made it one since it was seen to lag.
func (f *fan) rejoin(p *Place) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state == placeClosed:
		return false
	case p.at != outside:
		return true
	case !f.fits(p):
		return false
	}
	f.join(p)
	return true
}

// opened reports whether the fan has a position, and is not closed.
func (f *fan) opened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started && !f.over
}
