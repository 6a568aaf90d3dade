package verify

import (
	"slices"
	"sync"
	"time"
)

// Line is what one sender sends to one agent, or into one space, numbered from 1 in the order of sending. Its methods,
// and those of its tracks, may be called by many goroutines at a time.
type Line struct {
	tally  *Tally
	name   string   // sender and address
	window int      // how many may be under way
	tracks []*Track // of each receiver; never changed

	mu        sync.Mutex // guards the fields below, and the tracks
	base      uint64     // number of items[0]
	forgotten uint64     // up to here, numbers of which nobody knows the outcome were forgotten
	settled   uint64     // up to here, every number has an outcome
	items     []item
	due       int            // items without an outcome, or stored and still to arrive
	aborted   recent[uint64] // streams of which the sender was told that a part is not stored
}

// Sent is something that is sent on a line.
type Sent struct {
	Kind   Kind
	Load   any    // what the receiver needs to check the rest of it
	Stream uint64 // tells the stream that it is a part of from others of the line; 0: it is whole
	Ends   bool   // it is the last part of its stream
}

// item is one number of a line.
type item struct {
	Sent
	at      time.Duration
	outcome Outcome
	waiting int     // receivers that have seen neither it nor a later one
	came    int     // receivers that have it
	skipped []*skip // by receivers that saw a later one before the outcome was known
}

// NewLine makes a line to some receivers, on which nothing was sent. At most window numbers are to be under way. The
// line remembers eight times as many that did not arrive and of which nobody knows the outcome, and forgets the older
// ones.
func NewLine(t *Tally, name string, window int, to ...*Track) *Line {
	l := &Line{tally: t, name: name, window: window, base: 1, tracks: to}
	for _, track := range to {
		track.line = l
	}
	return l
}

// Name returns the line's name.
func (l *Line) Name() string { return l.name }

// Full reports whether as much is under way as the line allows.
func (l *Line) Full() bool { return l.Owed() >= l.window }

// Owed returns how much has no outcome, or is stored and still to arrive.
func (l *Line) Owed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due
}

// Made returns the last number that was given.
func (l *Line) Made() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.base + uint64(len(l.items)) - 1
}

// Settled returns the number up to which all have an outcome.
func (l *Line) Settled() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled
}

// Wanted returns the last number that is to arrive, as far as the sender knows: neither refused, nor unknown, nor of an
// aborted stream.
func (l *Line) Wanted() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.items)
	for n > 0 {
		if it := &l.items[n-1]; it.outcome != Refused && it.outcome != Unknown && !slices.Contains(l.aborted, it.Stream) {
			break
		}
		n--
	}
	return l.base + uint64(n) - 1
}

// Take returns the number of what is sent next.
func (l *Line) Take(s Sent) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) > 8*l.window+maxRecent { // only what nobody knows piles up
		l.forgotten = l.base
		l.drop(1)
	}
	l.items = append(l.items, item{Sent: s, at: l.tally.Elapsed(), waiting: len(l.tracks)})
	l.due++
	l.tally.Sent(s.Kind)
	return l.base + uint64(len(l.items)) - 1
}

// Set takes what became of a number. A number keeps the first outcome that it has.
func (l *Line) Set(n uint64, o Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(n, o)
	l.settle()
}

// Pending returns the first number from n on that has no outcome; the one that is given next where all have.
func (l *Line) Pending(n uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = max(n, l.settled+1)
	for it := l.item(n); it != nil && it.outcome != Pending; it = l.item(n) {
		n++
	}
	return n
}

// SetStored takes that every number up to n is stored that has no other outcome.
func (l *Line) SetStored(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= l.base+uint64(len(l.items)) {
		l.tally.Violated(Untrue, "%s: %d are said to be stored, and less were sent", l.name, n)
		return
	}
	for i := l.settled + 1; i <= n; i++ {
		l.set(i, Stored)
	}
	l.settle()
}

// Abort takes that a part of a stream was refused, permanently or for the moment: its parts need not arrive at who is
// told that it is aborted, even those that are stored.
func (l *Line) Abort(stream uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.aborted, stream) {
		l.aborted.add(stream)
	}
}

// Aborted reports whether a part of a stream was refused, as far as the line remembers.
func (l *Line) Aborted(stream uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.aborted, stream)
}

// Close counts what never came, and what has no outcome.
func (l *Line) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, to := range l.tracks {
		for _, s := range to.skips {
			l.judge(s)
		}
	}
	for i := range l.items {
		it, n := &l.items[i], l.base+uint64(i)
		if it.outcome == Pending {
			l.tally.Resolved(it.Kind, Unknown)
		}
		if it.outcome != Stored || slices.Contains(l.aborted, it.Stream) {
			continue
		}
		for _, to := range l.tracks {
			if to.last < n && !to.gaps.over() {
				l.tally.Missed(it.Kind, to.gaps.between(to.seq, 0), "%s: %s %d never came to %s", l.name, it.Kind, n, to.name)
			}
		}
	}
	l.drop(len(l.items))
	l.due = 0
}

// item returns a number's item; nil when it is over, or was never sent.
func (l *Line) item(n uint64) *item {
	if n < l.base || n >= l.base+uint64(len(l.items)) {
		return nil
	}
	return &l.items[n-l.base]
}

func (l *Line) set(n uint64, o Outcome) {
	it := l.item(n)
	if it == nil || it.outcome != Pending {
		return
	}
	it.outcome = o
	l.tally.Resolved(it.Kind, o)
	if o != Stored || it.waiting == 0 {
		l.due--
	}
	if o == Refused && it.came > 0 {
		l.tally.Violated(Untrue, "%s: %s %d came although it was refused", l.name, it.Kind, n)
	}
	for _, s := range it.skipped {
		if o == Stored && !s.came {
			l.miss(s)
		}
	}
	it.skipped = nil
}

// settle moves on over what has an outcome, and forgets what is over at the front.
func (l *Line) settle() {
	for it := l.item(l.settled + 1); it != nil && it.outcome != Pending; it = l.item(l.settled + 1) {
		l.settled++
	}
	n := 0
	for n < len(l.items) && (l.items[n].outcome == Refused || l.items[n].outcome != Pending && l.items[n].waiting == 0) {
		n++
	}
	l.drop(n)
}

func (l *Line) drop(n int) {
	clear(l.items[:n])
	l.items = l.items[n:]
	l.base += uint64(n)
	l.settled = max(l.settled, l.base-1)
}
