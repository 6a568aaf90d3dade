// Package ledger is what a lane knows of what it has stored, and the rules of which part may follow. It knows no
// log and no clock: the lane tells it what became of each record, and what time it is.
//
// What it does not know has a word each. A number is awaited that was refused for the moment, and doubted where what
// was said under it may be stored. A stream is maybe over where its end may be stored; its evidence is what the log,
// when it was read, said of it. The lane is exact where no number beyond its highest is stored, and unsure for as long
// as something may come again that was stored and that retention has taken.
package ledger

import (
	"time"

	"github.com/agora-relay/agora"
)

// Ledger is what a lane knows of what it has stored, and the rules of what may
// follow. It is one lane's own and guarded by its lock. Parts are taken while a record
// is made; the record's outcome then commits them, or undoes them in one go.
type Ledger struct {
	lastN   uint64            // highest number stored
	kept    uint64            // the one that was known before anything was read
	log     reading           // what the log told while it was read, until Inherit
	holes   spans             // numbers below lastN that were passed over, and so are not stored
	awaited uint64            // lowest number refused for the moment: none beyond it may overtake it; 0 for none
	doubted map[uint64]doubt  // numbers that were refused and may be stored, or have been
	ids     map[string]First  // messages by id, for the duplicate window
	idAges  []aged            // ids in the order they came
	numbers []First           // the latest numbered messages, by number modulo its length
	streams map[string]stream // those open, and those that ended lately
	ended   []string          // the ended ones in order, oldest first
	open    int               // how many are open
	toAbort []string          // open streams over a part that could not be stored: aborted before anything else
	lost    []lost            // what was refused while the log was read

	whole  bool      // the lane is known from its very first part
	exact  bool      // lastN was read from the log, or is known: no number beyond it is stored
	loose  time.Time // when the last part was stored that has no number, but an id or a stream
	unsure time.Time // until then what the client sends may be stored already, unknown to us: retention cut the log

	undo []was    // what take has changed in streams since the last commit
	old  struct { // what else Rollback returns to
		lastN, awaited uint64
		holes, ids     int
	}
}

// New returns the ledger of a lane; fresh says that nothing was stored on it before.
func New(fresh bool) Ledger { return Ledger{whole: fresh, exact: fresh} }

// Parked is what has to be kept of a ledger whose lane is put aside. The zero value is that of a lane that was never
// used.
type Parked struct {
	lastN        uint64
	holes        spans
	whole, exact bool
}

// Park returns what has to be kept, and whether that says all: else the log has to be read before the next record, as
// what is told apart by id or index may be said again within the window. It returns false where a lane that is put
// aside could not answer for what is open.
func (l *Ledger) Park(now time.Time, window time.Duration) (p Parked, all, ok bool) {
	if l.open > 0 || l.awaited != 0 || len(l.doubted) > 0 {
		return Parked{}, false, false
	}
	all = !now.Before(l.unsure) && (l.loose.IsZero() || now.Sub(l.loose) >= window)
	return Parked{lastN: l.lastN, holes: l.holes, whole: l.whole, exact: l.exact}, all, true
}

// Unpark returns the ledger with which the lane continues.
func (p Parked) Unpark() Ledger {
	return Ledger{lastN: p.lastN, kept: p.lastN, holes: p.holes, whole: p.whole, exact: p.exact}
}

const (
	maxOpen    = 4096 // streams open at a time in one lane
	maxEnded   = 1024 // ended streams remembered
	maxIDs     = 8192 // ids remembered
	maxNumbers = 256  // numbers whose position is remembered
	maxHoles   = 256  // spans of numbers passed over
	maxSaid    = 32   // parts of a stream of which is remembered what they said
)

type span struct{ from, to uint64 }

type spans []span

// First is the first message with an id or a number.
type First struct {
	n      uint64
	seq    uint64 // sequence of its record; 0 when that is not known
	index  int    // in that record
	Here   bool   // in the record that is being made or on its way
	said   uint32 // of a numbered one: what was said, by saying
	Stream string
}

// Position returns where the first one stands; seq is the record of this moment.
func (f First) Position(seq uint64) uint64 {
	if f.Here {
		return seq<<agora.SeqShift | uint64(f.index)
	}
	if f.seq == 0 {
		return 0
	}
	return f.seq<<agora.SeqShift | uint64(f.index)
}

type aged struct {
	id string
	at time.Time
}

type stream struct {
	kind      agora.Kind
	phase     phase
	evidence  evidence
	counted   bool // next is exact
	indexed   bool // its start had an index
	numbered  bool // every part of it had a number
	maybeOver bool // its end may be stored, unknown to us, or it never began: an abort of it is marked
	next      uint32
	said      *said  // what its latest parts with an index and no number said; nil for none
	epoch     uint64 // of the last record with a part of it
}

// said is what the latest parts of a stream said, by index modulo its length. Of what was undone an entry may stay: it
// has another's index, or is said again.
type said [maxSaid]struct{ index, saying uint32 }

// proven reports whether the parts prove that none is missing.
func (s stream) proven() bool { return s.indexed || s.numbered }

// was is a stream before a change.
type was struct {
	name   string
	stream stream // unknown: it was not there
}

// Verdict is what becomes of a part.
type Verdict struct {
	Store bool         // it is to be stored, and reckoned with
	Again bool         // it is there already
	At    First        // with Again: the first one
	Err   *agora.Error // it is refused
	Abort bool         // with Err: it can never be stored, and its stream can't do without it: an abort is stored in its place
}

// IsStreamPart reports whether m is a part of a stream of this lane.
func IsStreamPart(m *agora.Message) bool {
	return m.Part != agora.Whole && m.Stream != "" && (m.Kind == agora.Request || m.Kind == agora.Reply || m.Kind == agora.Event)
}

// Begin marks the state to which Rollback returns.
func (l *Ledger) Begin() {
	l.undo = l.undo[:0]
	l.old.lastN, l.old.awaited, l.old.holes, l.old.ids = l.lastN, l.awaited, len(l.holes), len(l.idAges)
}

// add reckons with m as stored.
func (l *Ledger) add(m *agora.Message, f First, epoch uint64, now time.Time) {
	if m.N > l.lastN {
		l.number(m, f)
	}
	if m.N == 0 && (m.ID != "" || IsStreamPart(m)) {
		l.loose = now
	}
	if m.ID != "" {
		if l.ids == nil {
			l.ids = make(map[string]First)
		}
		if _, ok := l.ids[m.ID]; !ok {
			l.idAges = append(l.idAges, aged{m.ID, now})
		}
		l.ids[m.ID] = f
	}
	if IsStreamPart(m) {
		l.step(m, epoch)
	}
}

func (l *Ledger) number(m *agora.Message, f First) {
	if l.lastN == 0 && !l.whole {
		l.log.first = m.N
	} else if m.N > l.lastN+1 {
		l.holes = append(l.holes, span{l.lastN + 1, m.N - 1})
	}
	l.lastN = m.N
	if l.awaited <= m.N {
		l.awaited = 0 // it has come: nothing beyond it is stored before
	}
	if l.numbers == nil {
		l.numbers = make([]First, maxNumbers)
	}
	f.said = saying(m)
	l.numbers[m.N%maxNumbers] = f
}

// step moves a stream on by one part.
func (l *Ledger) step(m *agora.Message, epoch uint64) {
	s := l.streams[m.Stream]
	switch {
	case m.Part == agora.Start:
		s = stream{kind: m.Kind, counted: true, indexed: m.Indexed, numbered: m.N != 0}
	case s.phase == unknown: // its start is not in the log any more
		s = stream{kind: m.Kind, indexed: m.Indexed, numbered: m.N != 0}
	case s.phase == doubted && m.Part == agora.Abort:
		s.maybeOver = false // whoever saw the start has its end, and it may still come again
	}
	s.phase = nextPhase[s.phase][storedAs(m.Part)]
	s.epoch = epoch
	s.numbered = s.numbered && (m.N != 0 || m.Part == agora.Abort)
	switch {
	case m.Indexed:
		s.next, s.counted = m.Index+1, true
		if m.N == 0 {
			if s.said == nil {
				s.said = new(said)
			}
			s.said[m.Index%maxSaid] = struct{ index, saying uint32 }{m.Index, saying(m)}
		}
	case m.Part != agora.Abort:
		s.next++
	}
	l.set(m.Stream, s)
}

// set changes a stream, so that it can be undone.
func (l *Ledger) set(name string, s stream) {
	old := l.streams[name]
	if n := len(l.undo); n == 0 || l.undo[n-1].name != name { // what it was before counts, not each step
		l.undo = append(l.undo, was{name, old})
	}
	l.put(name, old, s)
}

func (l *Ledger) put(name string, old, s stream) {
	if old.phase.isOpen() {
		l.open--
	}
	if s.phase.isOpen() {
		l.open++
	}
	if s.phase == unknown {
		delete(l.streams, name)
		return
	}
	if l.streams == nil {
		l.streams = make(map[string]stream)
	}
	l.streams[name] = s
}
