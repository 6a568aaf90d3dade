package loadgen

import (
	"sync/atomic"
)

// line carries messages of one sender to one address. One goroutine at a time sends on it.
type line struct {
	number   int
	from     *agent
	to       string       // who receives: an agent, or a space
	frames   Line         // nil until it is open
	copies   int64        // arrivals that each message is to have
	heard    atomic.Int64 // agents that something has reached
	sent     atomic.Int64 // messages since the beginning
	measured atomic.Int64 // of these, those that are measured
	refused  atomic.Int64 // of those that are measured, those that an error answered
	never    atomic.Int64 // of all, those that an error answered
	pause    atomic.Int64 // nothing is sent before, at its own pace; Ticks

	// Numbers of the first that is measured, and behind the last: what its sender says of a message holds where it
	// arrives, while the window opens and closes.
	first, behind atomic.Uint64

	dead atomic.Bool // nothing can be sent any more
	gate gate
	all  *everyone // nil: messages are through when those that watch say so
}

// got takes that an agent which had all messages before a number has all before another.
func (l *line) got(a *agent, had, has uint64) {
	if l.all != nil {
		if n := l.all.got(had, has); n > 0 {
			l.gate.through(n)
		}
	} else if a.watch {
		l.gate.through(1)
	}
}

// greet sends what only tries whether the line is open.
func (l *line) greet() {
	if !l.dead.Load() && l.from.conn.Send(l.frames.Frame(Stamp{l.number, hello, now()})) != nil {
		l.dead.Store(true)
	}
}

// send sends the line's next message, meant for a moment of the clock.
func (l *line) send(m *meter, meant int64) {
	if l.dead.Load() {
		return
	}
	n := l.sent.Load()
	measured := m.during(meant)
	if measured {
		l.measure(uint64(n))
	}
	if err := l.from.conn.Send(l.frames.Frame(Stamp{l.number, uint64(n), meant})); err != nil {
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

// measures reports whether a message is measured.
func (l *line) measures(n uint64) bool { return n < l.behind.Load() && n >= l.first.Load() }

// refuse takes a message that an error answered, and has the line rest until a moment of the clock.
func (l *line) refuse(n uint64, until int64) {
	if l.never.Add(1); l.measures(n) {
		l.refused.Add(1)
	}
	l.pause.Store(until)
	l.gate.through(l.gate.signs)
}

// kill ends a line permanently.
func (l *line) kill() {
	l.dead.Store(true)
	l.gate.through(1 << 40) // its sender waits for nothing more
}
