package spaces

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// outside is Place.at of one that is not among the fan's members.
const outside = -1

// roomy is the most events that a queue keeps room for while it is empty.
const roomy = 16

// Place is one session's place in one space: what it was handed by the
// fan-out and has not taken yet or, while it lags, its own reading of the log.
type Place struct {
	fan  *fan
	self agora.AgentID
	wake func()

	told told // the one who opens the place owns it, then Next

	at        int    // index in fan.members; guarded by fan.mu
	nextWoken *Place // owned by the fan's hand

	unheard atomic.Bool // Next may have something besides the queue: while it lags, from the log

	mu       sync.Mutex // guards the fields below
	state    placeState
	pressed  bool // counted in fan.pressed
	busy     bool // Next holds events that it has not returned
	queue    []*Event
	size     int // of queue; at most Config.QueueBytes, or one event
	pos      position
	heldFrom uint64        // where gathering began
	inbox    *broker.Inbox // its own, while it lags and reads
}

// begin lets p give what follows its start. sure: the log itself gave the
// position. Without one, not even a time, p gives what is stored from now on.
func (p *Place) begin(from broker.From, known, sure bool) {
	f, marked := p.fan, p.told.marked
	f.mu.Lock()
	p.mu.Lock()
	p.pos.sure = sure
	begins := placeBegins
	if known {
		p.seek(from)
	} else if p.at == outside && !f.started {
		begins = placeFollows
	}
	p.hears(begins)
	reads := p.state.reads()
	p.pos.sure = p.pos.sure || !reads
	// What must be marked is found out at once: later it would be more.
	p.unheard.Store(reads && f.started || marked)
	ready := p.ready()
	p.mu.Unlock()
	f.mu.Unlock()
	if ready {
		p.wake()
	}
}

// seek moves p, which gathered up to now, to where it is wanted. Both locks are held.
func (p *Place) seek(from broker.From) {
	p.pos.from = from
	after := from.After
	if p.at != outside && !from.Lost && from.Time.IsZero() && after >= p.heldFrom && (p.pos.sure || after <= wholeRecord(p.pos.seq)) {
		p.drop(after)
		p.pos.seq = max(p.pos.seq, after)
		return
	}
	p.fan.leave(p)
	p.hears(placeLeaves)
	p.queue, p.pos.seq = nil, after
	p.weigh(0)
	if p.fan.fits(p) {
		p.fan.join(p)
	}
}

// drop takes what is not beyond seq out of the queue.
func (p *Place) drop(seq uint64) {
	p.queue = slices.DeleteFunc(p.queue, func(e *Event) bool { return e.Seq <= seq })
	size := 0
	for _, e := range p.queue {
		size += e.size()
	}
	p.weigh(size)
}

// weigh notes the queue's new size; mu is held.
func (p *Place) weigh(size int) {
	p.size = size
	pressed := size > p.fan.hub.room()/2 && (p.state == placeGathers || p.state == placeKeepsUp)
	if pressed == p.pressed {
		return
	}
	p.pressed = pressed
	if pressed {
		p.fan.pressed.Add(1)
		return
	}
	p.fan.pressed.Add(-1)
	select {
	case p.fan.room <- struct{}{}:
	default:
	}
}

// put appends the events beyond p's position; size is that of all. When they
// find no room p leaves the fan and lags, from the last one that did. It tells
// whether p is to be woken. The fan calls it with its lock held.
func (p *Place) put(events []*Event, size int) (wake bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(events) > 0 && events[0].Seq <= p.pos.seq {
		size -= events[0].size()
		events = events[1:]
	}
	if len(events) == 0 || p.state == placeClosed {
		return false
	}
	wake = len(p.queue) == 0 && p.state.gives()
	if p.size+size > p.fan.hub.room() {
		events, size = p.room(events, size)
	}
	if len(events) > 0 {
		p.queue = append(p.queue, events...)
		p.pos.seq, p.pos.sure = events[len(events)-1].Seq, true
	}
	p.weigh(p.size + size)
	return wake
}

// room returns those of events that find room, and their size: at least one
// when the queue is empty, so that a body larger than the queue passes through
// it alone. If that is not all of them, p leaves the fan. Both locks are held.
func (p *Place) room(events []*Event, all int) (fit []*Event, size int) {
	limit := p.fan.hub.room() - p.size
	n := 0
	for n < len(events) && (size+events[n].size() <= limit || n == 0 && len(p.queue) == 0) {
		size += events[n].size()
		n++
	}
	if n < len(events) {
		p.fan.leave(p)
		p.hears(placeLeaves)
		p.unheard.Store(true)
		// It had everything that the fan had when that was at the log's end.
		p.pos.from = broker.From{Tail: p.fan.tail, TailAt: p.fan.tailAt}
	}
	return events[:n], size
}

// Space returns its name.
func (p *Place) Space() string { return p.fan.to.Space }

// Unheard reports whether Next may have something, without blocking. Whoever
// got a place asks once; later wake tells.
func (p *Place) Unheard() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready()
}

func (p *Place) ready() bool {
	return p.state.gives() && (len(p.queue) > 0 || p.unheard.Load())
}

// Tail returns a position up to which the fan-out has handed on everything,
// and when that was last known to be the log's end; at is zero while that was never
// known. caught reports whether this member was given all of it: it keeps up,
// and Next has returned all that it was handed.
func (p *Place) Tail() (seq uint64, at time.Time, caught bool) {
	f := p.fan
	f.mu.Lock()
	inbox := f.inbox
	f.mu.Unlock()
	if inbox == nil {
		return 0, time.Time{}, false
	}
	seq, at = inbox.Tail()
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq <= f.reached && at.After(f.tailAt) {
		f.tail, f.tailAt = seq, at // else the inbox has queued what is not handed on yet
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return f.tail, f.tailAt, p.caught()
}

// caught reports whether p is a member and Next has returned all that it was
// handed; mu is held.
func (p *Place) caught() bool {
	return p.state == placeKeepsUp && !p.busy && len(p.queue) == 0
}

// Close ends the place; the membership stays. A call of wake that is under way may
// still end after it. Idempotent.
func (p *Place) Close() {
	p.mu.Lock()
	if p.state == placeClosed {
		p.mu.Unlock()
		return
	}
	p.hears(placeCloses)
	inbox := p.inbox
	p.inbox, p.queue = nil, nil
	p.weigh(0)
	p.mu.Unlock()
	p.fan.forget(p)
	if inbox != nil {
		inbox.Close()
	}
	p.fan.hub.release(p.fan)
}

// told is what the member of a place was told.
type told struct {
	marked  bool     // what is stored up to mark is Redelivered
	mark    uint64   // 0 until it was read
	version uint64   // of the newest roster
	known   uint64   // rosters up to this position are older than those members that the join answered
	out     []*Event // what Next returned last, where that is worth using again
}

// placeState is what a place gives its session, and from where.
type placeState uint8

const (
	placeGathers placeState = iota // it gives nothing before its begin, and keeps what the fan hands on, once that has started
	placeFull                      // it gives nothing before its begin, and what it gathered found no room: it reads the log from there
	placeWaits                     // it begins where the fan starts, which it has not yet
	placeKeepsUp                   // it is a member of the fan, and gives what that hands on
	placeLags                      // it gives what it has queued, then what it reads from the log by itself
	placeClosed                    // it gives nothing more
	placeStates
)

// placeEvent is what happens to a place.
type placeEvent uint8

const (
	placeJoins   placeEvent = iota // it becomes a member of the fan
	placeLeaves                    // it is a member no more: something lies between it and the fan, or finds no room
	placeBegins                    // it is to give what follows its position
	placeFollows                   // it is to give what is stored from now on, and the fan has not started
	placeCloses                    // its session is done with it
	placeEvents
)

// placeNext is the life of a place: what each event makes of it. A fan that has not started has no members.
var placeNext = [placeStates][placeEvents]placeState{
	//            joins     leaves     begins     follows    closes
	placeGathers: {placeGathers, placeFull, placeKeepsUp, placeWaits, placeClosed},
	placeFull:    {placeGathers, placeFull, placeLags, placeLags, placeClosed},
	placeWaits:   {placeKeepsUp, placeWaits, placeWaits, placeWaits, placeClosed},
	placeKeepsUp: {placeKeepsUp, placeLags, placeKeepsUp, placeKeepsUp, placeClosed},
	placeLags:    {placeKeepsUp, placeLags, placeLags, placeLags, placeClosed},
	placeClosed:  {placeClosed, placeClosed, placeClosed, placeClosed, placeClosed},
}

func (s placeState) String() string {
	return [...]string{"gathers", "full", "waits", "keeps up", "lags", "closed"}[s]
}

// hears moves the place on by an event; mu is held.
func (p *Place) hears(e placeEvent) { p.state = placeNext[p.state][e] }

// gives reports whether the session is given what the place has.
func (s placeState) gives() bool { return s == placeWaits || s == placeKeepsUp || s == placeLags }

// reads reports whether the session is given what the log has, and not the fan.
func (s placeState) reads() bool { return s == placeWaits || s == placeLags }

// position is where a place stands in the log.
type position struct {
	seq  uint64      // of the last event put into its queue, or read
	sure bool        // the log gave that; else a client named it
	from broker.From // where it began, or last had everything
}

// read moves the position behind events that were read, none where all up to tail was. A gap is not a position of the
// log: it may be what a client named.
func (p *position) read(events []*Event, tail uint64) {
	p.from.Lost = p.from.Lost && len(events) == 0
	switch n := len(events); {
	case n > 0:
		p.seq, p.sure = events[n-1].Seq, events[n-1].Kind != agora.Gap
	case p.sure:
		p.seq = max(wholeRecord(p.seq), tail)
	default:
		p.seq, p.sure = tail, true
	}
}

// next returns from where the log is read.
func (p *position) next() broker.From {
	from := p.from
	if p.sure {
		from.After, from.Time = p.seq, time.Time{}
	}
	return from
}

// reaches reports whether nothing lies between the position and that of a fan. One beyond it is believed only when the
// log itself gave it: one that a client names may lie beyond the end of a log that was made again, which is for the
// place's own inbox to find out.
func (p *position) reaches(fan uint64) bool {
	return !p.from.Lost && p.seq >= fan && (p.sure || p.from.Time.IsZero() && p.seq <= wholeRecord(fan))
}
