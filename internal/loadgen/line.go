package loadgen

import (
	"sync/atomic"
)

// line carries messages of one sender to one address. One goroutine at a time sends on it.
type line struct {
	number   int
	from     *agent
	to       string // who receives; nobody alone in a space
	frame    template
	copies   int64        // arrivals that each message is to have
	sent     atomic.Int64 // messages since the beginning
	measured atomic.Int64 // of these, those that are measured
	refused  atomic.Int64 // of those that are measured, those that an error answered
	never    atomic.Int64 // of all, those that an error answered
	pause    atomic.Int64 // nothing is sent before, at its own pace; Ticks

	// Numbers of the first that is measured, and behind the last: what its sender says of a message holds where it arrives, while the
	// window opens and closes.
	first, behind atomic.Uint64

	dead atomic.Bool // nothing can be sent any more
	gate gate
}

// gate bounds what a line has under way.
type gate struct {
	signs int64         // of life that each message has when it is through
	got   atomic.Int64  // signs so far
	floor atomic.Int64  // signs that the sender waits for
	open  chan struct{} // wakes it
}

// pass waits until fewer than window of the messages sent are under way; then until
// half of them are, so that sender and receivers don't wake each other for every one.
// It returns false when stop is closed.
func (g *gate) pass(sent, window int64, stop <-chan struct{}) bool {
	if sent*g.signs-g.got.Load() < window*g.signs {
		return true
	}
	g.floor.Store((sent - window/2) * g.signs)
	for g.got.Load() < g.floor.Load() {
		select {
		case <-g.open:
		case <-stop:
			return false
		}
	}
	return true
}

// through counts signs that messages have come through.
func (g *gate) through(signs int64) {
	after := g.got.Add(signs)
	if f := g.floor.Load(); after >= f && after-signs < f {
		select {
		case g.open <- struct{}{}:
		default: // it is awake
		}
	}
}

// send sends the line's next message, meant for a moment of the clock.
func (l *line) send(m *meter, meant int64) {
	if l.dead.Load() {
		return
	}
	n := l.sent.Load()
	l.frame.fill(stamp{l.number, uint64(n), meant})
	measured := m.during(meant)
	if measured {
		l.measure(uint64(n))
	}
	if err := l.from.conn.Write(l.frame.bytes); err != nil {
		l.dead.Store(true)
		return
	}
	l.sent.Store(n + 1)
	if measured {
		l.measured.Add(1)
	}
}

// measure takes the next message into what is measured, before it is sent.
func (l *line) measure(n uint64) {
	if l.behind.Load() == 0 {
		l.first.Store(n)
	}
	l.behind.Store(n + 1)
}

// measures tells whether a message is measured.
func (l *line) measures(n uint64) bool { return n < l.behind.Load() && n >= l.first.Load() }
