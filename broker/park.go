package broker

import (
	"time"

	"github.com/agora-relay/agora/broker/ledger"
)

// Parked is what has to be kept of a lane that was put aside, so that it can go on: a few words in place of a lane.
// The zero value is a lane that was never used.
type Parked struct {
	ledger            ledger.Parked
	lastSeq, fenceSeq uint64
	read              bool // the log has to be read first, as an heir does
}

// Park ends a lane that has nothing in hand and no open stream, and returns what LaneConfig.Parked takes to go on
// with it under the same epoch. It does nothing, and returns false, while there is anything that a lane
// put aside could not answer for: parts in hand, open streams, numbers that must come again, parts given up.
//
// What is told apart by id or index may be said again within the duplicate window, and the lane must know it then: put aside
// earlier, it reads the log before its next record. That costs, so it is done only where costly is set.
func (l *Lane) Park(costly bool) (Parked, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, all, ok := l.ledger.Park(time.Now(), l.b.cfg.Duplicates)
	if !ok || l.state != active || !l.idle() || l.failures.gaveUp {
		return Parked{}, false
	}
	p := Parked{ledger: kept, lastSeq: l.history.last, fenceSeq: l.fence.seq, read: !l.history.known || !all}
	if p.read && !costly {
		return Parked{}, false
	}
	l.finish(ended)
	l.b.unregister(l)
	return p, true
}

// unpark has a new lane go on where an earlier one was put aside.
func (l *Lane) unpark(p Parked) {
	l.fence.seq, l.history = p.fenceSeq, laneHistory{known: !p.read, inherited: !p.read, last: p.lastSeq}
	if p.read {
		l.history.last = 0 // all of it is read
	}
	l.ledger = p.ledger.Unpark()
}
