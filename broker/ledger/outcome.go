package ledger

import (
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
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
		if !l.streams[w.name].phase.isOpen() && w.stream.phase.isOpen() || w.stream.phase == gone {
			l.retire(w.name)
		}
	}
	l.undo = l.undo[:0]
	l.forgetAborted()
	if n := len(l.holes); n > maxHoles {
		l.holes = slices.Delete(l.holes, 0, n-maxHoles)
	}
	l.forget(now, window)
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
	l.lastN, l.blocked, l.holes = l.old.lastN, l.old.blocked, l.holes[:l.old.holes]
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

// forget drops ids that are older than the window.
func (l *Ledger) forget(now time.Time, window time.Duration) {
	for len(l.idAges) > 0 && (len(l.idAges) > maxIDs || now.Sub(l.idAges[0].at) > window) {
		delete(l.ids, l.idAges[0].id)
		l.idAges = l.idAges[1:]
	}
}

// Lose says that m was refused for the moment and not stored. Its stream can't
// go on over the hole, and numbers beyond m's must not overtake it.
func (l *Ledger) Lose(m *agora.Message) {
	if m.N > l.lastN && (l.blocked == 0 || m.N < l.blocked) {
		l.blocked = m.N
	}
	switch {
	case !IsStreamPart(m):
	case m.Part != agora.Start:
		l.breakStream(m.Stream)
	case m.N == 0: // else the number says that what follows must wait
		l.unstart(m.Stream)
	default:
		l.unbegin(m.Stream, m.N)
	}
}

// unbegin forgets a stream that presence alone knew of, if the number of its start says that it is not stored: its
// receiver has nothing that an abort would end, and gets it all once the start has come again.
func (l *Ledger) unbegin(name string, start uint64) {
	if s := l.streams[name]; s.phase == running && s.hearsay && s.evidence != torn && l.exact && start > l.lastN {
		l.put(name, s, stream{})
	}
}

// unstart notes that a stream will not begin before its start has come again.
func (l *Ledger) unstart(name string) {
	if old := l.streams[name]; name != "" && old.phase == gone {
		l.put(name, old, stream{phase: nextPhase[gone][startRefused]})
		l.retire(name)
	}
}

// Pass says that a number will not come again. A lower one that was refused still will.
func (l *Ledger) Pass(n uint64) {
	if l.blocked == n {
		l.blocked = 0
	}
	if l.old.blocked == n {
		l.old.blocked = 0
	}
}

// Next returns the number that follows those that are stored, or the one that was refused for the moment and is to come
// again; 0 where none is stored.
func (l *Ledger) Next() uint64 {
	switch {
	case l.blocked != 0:
		return l.blocked
	case l.lastN != 0:
		return l.lastN + 1
	}
	return 0
}

// Doubt remembers what was said under a number whose sender was refused, though it may be stored:
// the sender is free to say something else under it, and must not take that for stored.
func (l *Ledger) Doubt(m *agora.Message) {
	if m.N == 0 {
		return
	}
	if l.doubted == nil || len(l.doubted) >= maxDoubted {
		l.doubted = make(map[uint64]uint64)
	}
	l.doubted[m.N] = hashOf(m)
}

const maxDoubted = 4 * record.MaxParts // numbers; a lane has one record in doubt at a time

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

// Disprove says that m, which was in doubt, is not stored.
func (l *Ledger) Disprove(m *agora.Message) {
	delete(l.doubted, m.N)
	l.Lose(m)
}

// Forsake says that the sender of m has heard that it is not stored, whatever its fate. A sender without numbers then
// sends no more of its stream: the stream is aborted, unless it has ended.
func (l *Ledger) Forsake(m *agora.Message) {
	if m.N == 0 && IsStreamPart(m) {
		l.breakStream(m.Stream)
	}
}

// Suspect says that m, whose sender was refused, may have been stored and be gone from the log: it is marked if it
// comes again, by its number or, where it has none, with all that the ledger can't tell until then. Who has read a
// start that is gone is owed an end: at once where its sender does not number, and may say no more of the stream. A
// number comes again, and tells its receivers what they had: the stream is aborted if the session ends before.
func (l *Ledger) Suspect(m *agora.Message, until time.Time) {
	if m.N == 0 && until.After(l.unsure) {
		l.unsure = until
	}
	if old := l.streams[m.Stream]; IsStreamPart(m) && m.Part == agora.Start && !old.phase.isOpen() {
		l.put(m.Stream, old, stream{kind: m.Kind, phase: nextPhase[old.phase][startDoubted], numbered: m.N != 0, hearsay: true})
		if m.N == 0 {
			l.toAbort = append(l.toAbort, m.Stream)
		}
	}
	l.Lose(m)
}

// SuspectEnd says that the end of a stream may have been stored and be gone from the log: if the stream is still to be
// aborted, the abort is marked.
func (l *Ledger) SuspectEnd(stream string) {
	if s := l.streams[stream]; s.phase.isOpen() {
		s.hearsay = true
		l.streams[stream] = s
	}
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
	m.Kind, m.Stream, m.Again = s.kind, name, s.hearsay
	l.step(&m, epoch)
	return m
}

// AwaitsEnd reports whether a stream has a start and no end: its receiver must still hear of that.
func (l *Ledger) AwaitsEnd(name string) bool { return l.streams[name].phase.isOpen() }

// IsOpen reports whether a stream is open, and no part of it was lost.
func (l *Ledger) IsOpen(name string) bool { return l.streams[name].phase == running }
