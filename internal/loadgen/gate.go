package loadgen

import "sync/atomic"

// gate bounds what a line has under way.
type gate struct {
	signs int64         // of life that each message has when it is through
	got   atomic.Int64  // signs so far
	floor atomic.Int64  // signs that the sender waits for
	open  chan struct{} // wakes it
}

// pass waits until fewer than window of the messages sent are under way; where they were not, until so many more
// can be sent as one burst has, so that sender and receivers don't wake each other for every one.
// It returns false when stop is closed.
func (g *gate) pass(sent, window, burst int64, stop <-chan struct{}) bool {
	if sent*g.signs-g.got.Load() < window*g.signs {
		return true
	}
	g.floor.Store((sent - window + burst) * g.signs)
	for g.got.Load() < g.floor.Load() {
		select {
		case <-g.open:
		case <-stop:
			return false
		}
	}
	return true
}

// everyone tells which messages of a line to many agents the last of them has, by the burst.
type everyone struct {
	agents int64
	burst  uint64
	have   []atomic.Int64 // agents that have a burst, those under way going round
}

func newEveryone(agents, window, burst int) *everyone {
	return &everyone{int64(agents), uint64(burst), make([]atomic.Int64, window/burst+2)}
}

// got takes that an agent which had all messages before a number has all before another, and returns how many are
// through by that.
func (e *everyone) got(had, has uint64) (through int64) {
	for b := had / e.burst; b < has/e.burst; b++ {
		if have := &e.have[b%uint64(len(e.have))]; have.Add(1) == e.agents {
			have.Store(0)
			through += int64(e.burst)
		}
	}
	return through
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
