package ledger

import (
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// A part that is refused is known to the ledger in one of these ways, each with a method:
//
//	for the moment, and it is not stored   Lose: it is to come again, and nothing makes up for it meanwhile
//	the same, while the log is read        LoseLater; Settle then loses it
//	for the moment, and it may be stored   Doubt; once the log was read, Resolve says what became of it
//	for good, or its number is used up     Pass: it will not come again

// Lose says that m was refused for the moment and not stored. Its stream can't
// go on over the hole, and numbers beyond m's must not overtake it.
func (l *Ledger) Lose(m *agora.Message) {
	l.await(m.N)
	switch {
	case !IsStreamPart(m):
	case m.Part == agora.Start:
		l.loseStart(m.Stream, m.N)
	default:
		l.breakStream(m.Stream)
	}
}

// await has the numbers beyond one that was refused wait until it comes again.
func (l *Ledger) await(n uint64) {
	if n > l.lastN && (l.awaited == 0 || n < l.awaited) {
		l.awaited = n
	}
}

// loseStart says that the start of a stream was refused under a number; 0 for none.
func (l *Ledger) loseStart(name string, n uint64) {
	switch s := l.streams[name]; {
	case n == 0 && s.phase == unknown: // with a number, that says that what follows must wait
		l.put(name, s, stream{phase: nextPhase[unknown][startRefused]})
		l.retire(name)
	case n > l.lastN && l.exact && s.phase == running && s.maybeOver && s.evidence != torn:
		// Presence alone knew of the stream, and the number of its start says that it is not stored: its receiver has
		// nothing that an abort would end, and gets it all once the start has come again.
		l.put(name, s, stream{})
	}
}

// lost is a part that was refused while the log was read, or several of a stream.
type lost struct {
	n      uint64 // the lowest number that is to come again; 0 for none
	stream string // empty where it is part of none
	start  bool
	number uint64 // of the start, when it was refused
}

const maxLost = 2 * maxOpen // starts and other parts of more streams than can be open

// LoseLater says that m was refused for the moment while the log is read, when the ledger does not tell what that means
// for its stream: Settle loses it.
func (l *Ledger) LoseLater(m *agora.Message) {
	p := lost{n: m.N}
	if IsStreamPart(m) {
		p.stream, p.start = m.Stream, m.Part == agora.Start
	}
	for i := range l.lost {
		q := &l.lost[i]
		if q.stream == p.stream && q.start == p.start {
			if p.n != 0 && (q.n == 0 || p.n < q.n) {
				q.n = p.n
			}
			return
		}
	}
	if p != (lost{}) && len(l.lost) <= maxLost {
		p.number = p.n
		l.lost = append(l.lost, p)
	}
}

// Unsettled reports whether parts were refused that Settle is to lose.
func (l *Ledger) Unsettled() bool { return len(l.lost) > 0 }

// LostTooMuch reports whether more was refused than Settle can lose: the lane can't go on.
func (l *Ledger) LostTooMuch() bool { return len(l.lost) > maxLost }

// Settle loses what was refused while the log was read.
func (l *Ledger) Settle() {
	for _, p := range l.lost {
		l.await(p.n)
		if p.stream != "" && (!p.start || p.number == 0) { // presence may have heard of a start before the log did
			l.breakStream(p.stream)
		}
		if p.start {
			l.loseStart(p.stream, p.number)
		}
	}
	l.lost = nil
	l.forgetAborted()
}

// Pass says that a number will not come again. A lower one that was refused still will.
func (l *Ledger) Pass(n uint64) {
	if l.awaited == n {
		l.awaited = 0
	}
	if l.old.awaited == n {
		l.old.awaited = 0
	}
	for i := range l.lost {
		if l.lost[i].n == n {
			l.lost[i].n = 0
		}
	}
}

// Doubt says that m was refused, though it may be stored: its sender is free to say something else under its number,
// and must not take that for stored.
func (l *Ledger) Doubt(m *agora.Message) {
	if m.N == 0 {
		return
	}
	if l.doubted == nil || len(l.doubted) >= maxDoubted {
		l.doubted = make(map[uint64]doubt)
	}
	l.doubted[m.N] = doubt{said: hashOf(m), forgotten: l.doubted[m.N].forgotten}
}

// doubt is what is remembered of a number in doubt.
type doubt struct {
	said      uint64 // a hash of the message
	forgotten bool   // an earlier copy is forgotten: the number stays in doubt, whatever becomes of the next one
}

const maxDoubted = 4 * record.MaxParts // numbers; a lane has one record in doubt at a time

// Fate is what became of a part in doubt, once the log was read.
type Fate uint8

// The fates.
const (
	Stored    Fate = iota // it is stored, though its sender has heard that it is not
	NotStored             // it is not stored, and never will be
	Forgotten             // it may have been stored, and be gone from the log since
)

// Resolve says what became of a part in doubt. What is forgotten is marked if it comes again: by its number or, where
// it has none, with all that comes until a time and that the ledger can't tell from it.
func (l *Ledger) Resolve(m *agora.Message, f Fate, until time.Time) {
	switch f {
	case Stored:
		if m.N == 0 && IsStreamPart(m) { // a sender without numbers sends no more of its stream
			l.breakStream(m.Stream)
		}
		return
	case NotStored:
		if !l.doubted[m.N].forgotten {
			delete(l.doubted, m.N)
		}
	case Forgotten:
		l.forget(m, until)
	}
	l.Lose(m)
}

// forget notes that a part is forgotten. Anyone who has read a start is owed an end: at once where its sender does not
// number, and may say no more of the stream. A number comes again, and tells its receivers what they had: the stream is
// aborted if the session ends before.
func (l *Ledger) forget(m *agora.Message, until time.Time) {
	if d, ok := l.doubted[m.N]; ok {
		d.forgotten = true
		l.doubted[m.N] = d
	}
	if m.N == 0 && until.After(l.unsure) {
		l.unsure = until
	}
	s := l.streams[m.Stream]
	if !IsStreamPart(m) || m.Part != agora.Start || s.phase.isOpen() {
		return
	}
	l.put(m.Stream, s, stream{kind: m.Kind, phase: nextPhase[s.phase][startDoubted], numbered: m.N != 0, maybeOver: true})
	if m.N == 0 {
		l.toAbort = append(l.toAbort, m.Stream)
	}
}

// DoubtEnd says that the end of a stream is forgotten: if the stream is still to be aborted, the abort is marked.
func (l *Ledger) DoubtEnd(stream string) {
	if s := l.streams[stream]; s.phase.isOpen() {
		s.maybeOver = true
		l.streams[stream] = s
	}
}

// Next returns the number that follows those that are stored, or the one that was refused for the moment and is to come
// again; 0 where none is stored.
func (l *Ledger) Next() uint64 {
	switch {
	case l.awaited != 0:
		return l.awaited
	case l.lastN != 0:
		return l.lastN + 1
	}
	return 0
}
