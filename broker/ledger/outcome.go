package ledger

import (
	"slices"
	"time"

	"github.com/agora-relay/agora"
)

// Commit says that what was taken since Begin is stored, in the record at seq.
func (l *Ledger) Commit(seq uint64, now time.Time, window time.Duration) {
	for _, taken := range l.idAges[l.old.ids:] {
		if f := l.ids[taken.id]; f.Here {
			f.seq, f.Here = seq, false
			l.ids[taken.id] = f
		}
	}
	if l.numbers != nil {
		for n := max(l.old.lastN+1, l.lastN-min(l.lastN, maxNumbers-1)); n <= l.lastN; n++ {
			if f := &l.numbers[n%maxNumbers]; f.n == n && f.Here {
				f.seq, f.Here = seq, false
			}
		}
	}
	for _, w := range l.undo {
		if !l.streams[w.name].phase.isOpen() && w.stream.phase.isOpen() || w.stream.phase == unknown {
			l.retire(w.name)
		}
	}
	l.undo = l.undo[:0]
	l.forgetAborted()
	if n := len(l.holes); n > maxHoles {
		l.holes = slices.Delete(l.holes, 0, n-maxHoles)
	}
	for len(l.idAges) > 0 && (len(l.idAges) > maxIDs || now.Sub(l.idAges[0].at) > window) {
		delete(l.ids, l.idAges[0].id)
		l.idAges = l.idAges[1:]
	}
}

// Rollback returns to Begin: what was taken since then is not stored.
func (l *Ledger) Rollback() {
	for _, w := range slices.Backward(l.undo) {
		l.put(w.name, l.streams[w.name], w.stream)
	}
	l.undo = l.undo[:0]
	l.forgetAborted()
	for _, taken := range l.idAges[l.old.ids:] {
		delete(l.ids, taken.id)
	}
	l.idAges = l.idAges[:l.old.ids]
	l.lastN, l.awaited, l.holes = l.old.lastN, l.old.awaited, l.holes[:l.old.holes]
}

// forgetAborted forgets those streams over a hole that have their abort, or never had a start.
func (l *Ledger) forgetAborted() {
	if len(l.toAbort) > 0 {
		l.toAbort = slices.DeleteFunc(l.toAbort, func(name string) bool { return !l.streams[name].phase.owesAbort() })
	}
}

// retire puts an ended stream among those to be forgotten one day.
func (l *Ledger) retire(name string) {
	if l.streams[name].phase.ended() {
		l.ended = append(l.ended, name)
	}
	for len(l.ended) > maxEnded {
		if !l.streams[l.ended[0]].phase.isOpen() {
			delete(l.streams, l.ended[0])
		}
		l.ended = l.ended[1:]
	}
}

// breakStream marks an open stream as one to be aborted.
func (l *Ledger) breakStream(name string) {
	s := l.streams[name]
	was := s.phase
	if s.phase = nextPhase[was][partLost]; s.phase == was {
		return
	}
	l.streams[name] = s
	l.toAbort = append(l.toAbort, name)
}

// BreakAll marks all open streams as ones to be aborted.
func (l *Ledger) BreakAll() {
	for _, o := range l.Running() {
		l.breakStream(o.Stream)
	}
}

// OwesAborts reports whether a stream is to be aborted before anything else is stored.
func (l *Ledger) OwesAborts() bool { return len(l.toAbort) > 0 }

const maxAborts = 128 // in one record

// NextAborts returns the names of the streams that are to be aborted by the next record.
func (l *Ledger) NextAborts() []string {
	names := make([]string, 0, min(maxAborts, len(l.toAbort)))
	for _, name := range l.toAbort {
		if len(names) == maxAborts {
			break
		}
		if l.streams[name].phase.owesAbort() {
			names = append(names, name)
		}
	}
	return names
}

// Abort returns the part that ends a stream for its receiver, and reckons with it from now on.
func (l *Ledger) Abort(name string, epoch uint64) agora.Message {
	s := l.streams[name]
	m := agora.AbortBody{Code: agora.StreamAborted}.Message()
	m.Kind, m.Stream, m.Again = s.kind, name, s.maybeOver
	l.step(&m, epoch)
	return m
}

// AwaitsEnd reports whether a stream has a start and no end: its receiver must still hear of that.
func (l *Ledger) AwaitsEnd(name string) bool { return l.streams[name].phase.isOpen() }

// IsRunning reports whether a stream is open, and no part of it was lost.
func (l *Ledger) IsRunning(name string) bool { return l.streams[name].phase == running }
