package soak

import (
	"sync"
	"time"
)

// result is what the client said of something that was sent.
type result uint8

const (
	pending result = iota
	stored
	refused // it is not stored
	unknown // nobody can know
)

// line checks what one sender sends to one agent, or into one space. It is
// numbered from 1, in the order of sending.
type line struct {
	tally  *tally
	name   string // sender and addressee
	window int    // how many may be under way

	mu        sync.Mutex
	base      uint64 // number of items[0]
	forgotten uint64 // up to here, numbers of which nobody knows the outcome were forgotten
	items     []item
	due       int      // items without a result, or stored and still to arrive
	tracks    []*track // of each receiver
}

// item is one number of a line.
type item struct {
	kind    kind
	at      time.Duration
	load    any // what the receiver needs to check the rest of it
	result  result
	waiting int     // receivers that have seen neither it nor a later one
	came    int     // receivers that have it
	skipped []*skip // receivers that saw a later one before the result was known
}

// track is how far one receiver of a line is. The line's lock guards it.
type track struct {
	name string // of the receiver
	gaps *gaps  // of its mailbox, or of the space
	last uint64 // highest number that came
	seq  uint64 // its position

	skips []*skip // latest numbers that a later one has overtaken
}

// skip is a number that a later one has overtaken.
type skip struct {
	to     *track
	n      uint64
	told   bool // a gap was told there
	missed bool // it was counted as lost, or told
	came   bool // later
}

// maxSkips is how many overtaken numbers a track remembers.
const maxSkips = 64

func newLine(t *tally, name string, window int, tracks ...*track) *line {
	return &line{tally: t, name: name, window: window, base: 1, tracks: tracks}
}

// full tells whether as much is under way as the line allows.
func (l *line) full() bool { return l.owed() >= l.window }

// owed returns how much has no result, or is still to arrive.
func (l *line) owed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due
}

// take returns the number of what is sent next.
func (l *line) take(k kind, load any) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) > 8*l.window+maxSkips { // only what nobody knows piles up
		l.forgotten = l.base
		l.drop(1)
	}
	l.items = append(l.items, item{kind: k, at: l.tally.clock(), load: load, waiting: len(l.tracks)})
	l.due++
	l.tally.counts[k].sent.Add(1)
	return l.base + uint64(len(l.items)) - 1
}

// item returns a number's item; nil when it is over, or was never sent.
func (l *line) item(n uint64) *item {
	if n < l.base || n >= l.base+uint64(len(l.items)) {
		return nil
	}
	return &l.items[n-l.base]
}

// set takes what became of a number.
func (l *line) set(n uint64, r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	it := l.item(n)
	if it == nil || it.result != pending {
		return
	}
	it.result = r
	l.tally.result(it.kind, r)
	if r != stored || it.waiting == 0 {
		l.due--
	}
	if r == refused && it.came > 0 {
		l.tally.violated(Untrue, "%s: %s %d came although it was refused", l.name, it.kind, n)
	}
	for _, s := range it.skipped {
		if r == stored && !s.came {
			l.miss(it.kind, s)
		}
	}
	it.skipped = nil
	l.trim()
}

// miss counts a number that has not come and was overtaken.
func (l *line) miss(k kind, s *skip) {
	s.missed = true
	l.tally.lose(k, s.told, "%s: %s %d never came to %s, %d did", l.name, k, s.n, s.to.name, s.to.last)
}

// trim forgets what is over at the front.
func (l *line) trim() {
	n := 0
	for n < len(l.items) && (l.items[n].result == refused || l.items[n].result != pending && l.items[n].waiting == 0) {
		n++
	}
	l.drop(n)
}

func (l *line) drop(n int) {
	clear(l.items[:n])
	l.items = l.items[n:]
	l.base += uint64(n)
}
