package broker

import (
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
)

// ledger is what a lane knows of what it has stored, and the rules of what may
// follow. It is one lane's own and guarded by its lock. Parts are taken while a record
// is made; the record's outcome then commits them, or undoes them in one go.
type ledger struct {
	lastN   uint64            // highest number stored
	holes   []span            // numbers below lastN that were passed over, and so are not stored
	blocked uint64            // lowest number refused for the moment: none beyond it may overtake it; 0 for none
	doubted map[uint64]uint64 // what was said under numbers that were refused while they may have been stored: a hash
	ids     map[string]first  // messages by id, for the duplicate window
	idAges  []aged            // ids in the order they came
	numbers []first           // the latest numbered messages, by number modulo its length
	streams map[string]stream // those open, and those that ended lately
	ended   []string          // the ended ones in order, oldest first
	open    int               // how many are open
	holed   []string          // open streams over a part that could not be stored: aborted before anything else

	whole  bool      // the lane is known from its very first part
	exact  bool      // lastN was read from the log, or is known
	loose  time.Time // when the last part was stored that has no number, but an id or a stream
	unsure time.Time // until then what the client sends may be stored already, unknown to us: retention cut the log

	undo []was // what take has changed in streams since the last commit
	old  struct {
		lastN, blocked uint64
		holes          int
	}
}

const (
	maxOpen    = 4096 // streams open at a time in one lane
	maxEnded   = 1024 // ended streams remembered
	maxIDs     = 8192 // ids remembered
	maxNumbers = 256  // numbers whose position is remembered
	maxHoles   = 256  // spans of numbers passed over
)

type span struct{ from, to uint64 }

// first is the first message with an id or a number.
type first struct {
	n      uint64
	seq    uint64 // sequence of its record; 0 when that is not known
	index  int    // in that record
	here   bool   // in the record that is being made or on its way
	stream string
}

type aged struct {
	id string
	at time.Time
}

type phase uint8

const (
	gone      phase = iota // not known
	unstarted              // its start, which has no number, was refused for the moment
	running                // open
	broken                 // open to its receiver, but a part could not be stored: to be aborted
	over                   // ended by its sender
	aborted                // ended by the cluster
)

type stream struct {
	kind     agora.Kind
	phase    phase
	counted  bool // next is exact
	indexed  bool // its start had an index
	numbered bool // every part of it had a number
	read     bool // its start, or a later part, was read from the log
	hearsay  bool // presence alone knew of it: its end may have been stored, and lost since
	next     uint32
	epoch    uint64 // of the last record with a part of it
}

// proven tells whether the parts prove that none is missing.
func (s stream) proven() bool { return s.indexed || s.numbered }

// was is a stream before a change.
type was struct {
	name   string
	stream stream // gone: it was not there
}

// verdict is what becomes of a part.
type verdict struct {
	store bool
	again bool  // it is there already: at is the first one
	at    first //
	err   *agora.Error
	abort bool // with err: it can never be stored, and its stream can't do without it: an abort is stored in its place
}

// relates tells whether m is a part of a stream of this lane.
func relates(m *agora.Message) bool {
	return m.Part != agora.Whole && m.Stream != "" && (m.Kind == agora.Request || m.Kind == agora.Reply || m.Kind == agora.Event)
}

// begin marks the state to which rollback returns.
func (l *ledger) begin() {
	l.undo = l.undo[:0]
	l.old.lastN, l.old.blocked, l.old.holes = l.lastN, l.blocked, len(l.holes)
}

// take decides what becomes of m, whose place in the record would be index, and
// if it may be stored, reckons with it from now on.
func (l *ledger) take(m *agora.Message, index int, epoch uint64, now time.Time) verdict {
	if v := l.known(m); v.again || v.err != nil {
		return v
	}
	if l.blocked != 0 && m.N != 0 && m.N <= l.blocked {
		l.blocked = 0 // here it is again
	}
	if relates(m) {
		if v := l.follows(m); v.again || v.err != nil {
			return v
		}
	}
	if !m.Again && now.Before(l.unsure) && !l.proves(m) {
		m.Again = true
	}
	l.add(m, first{n: m.N, index: index, here: true, stream: m.Stream}, epoch, now)
	return verdict{store: true}
}

// known finds what was stored before by its number or its id.
func (l *ledger) known(m *agora.Message) verdict {
	if guard.Numbers && m.N != 0 && m.N <= l.lastN {
		if l.passedOver(m.N) {
			if l.streams[m.Stream].phase == aborted && relates(m) && m.Part != agora.Start {
				return refuseAborted(m.Stream) // as it was refused the first time: the answer was lost
			}
			return refuse(agora.InvalidRequest, "number %d was not stored and a later one was: number it anew", m.N)
		}
		if said, ok := l.doubted[m.N]; ok && said != hashOf(m) {
			return refuse(agora.InvalidRequest, "number %d is another message's, which was stored after all: number it anew", m.N)
		}
		v := verdict{again: true, at: first{n: m.N, stream: m.Stream}}
		if len(l.numbers) == maxNumbers {
			if f := l.numbers[m.N%maxNumbers]; f.n == m.N {
				v.at = f
			}
		}
		return v
	}
	if guard.Names && m.ID != "" {
		if f, ok := l.ids[m.ID]; ok {
			return verdict{again: true, at: f}
		}
	}
	if guard.Order && l.blocked != 0 && m.N > l.blocked {
		v := refuse(agora.Unavailable, "number %d was refused and has not come again", l.blocked)
		v.err.RetryAfter = retryAfter
		return v
	}
	return verdict{}
}

func (l *ledger) passedOver(n uint64) bool {
	for _, h := range l.holes {
		if h.from <= n && n <= h.to {
			return true
		}
	}
	return false
}

// follows checks a part against its stream.
func (l *ledger) follows(m *agora.Message) verdict {
	s := l.streams[m.Stream]
	if m.Part == agora.Start {
		return l.starts(m, s)
	}
	switch s.phase {
	case gone:
		return refuse(agora.StreamNotFound, "stream %q is not open", m.Stream)
	case unstarted, // the start may come again, and this part with it
		broken: // not for good before the abort is stored: a successor might let the stream go on without this part
		return verdict{err: unavailable(nil)}
	case aborted:
		return refuseAborted(m.Stream)
	case over:
		if repeats(m, s) {
			return verdict{again: true, at: first{stream: m.Stream}}
		}
		return refuse(agora.StreamNotFound, "stream %q has ended", m.Stream)
	}
	if s.kind != m.Kind {
		return refuse(agora.InvalidRequest, "stream %q was started by another type of message", m.Stream)
	}
	return l.next(m, s)
}

// starts checks a start.
func (l *ledger) starts(m *agora.Message, s stream) verdict {
	switch {
	case s.phase != gone && repeats(m, s):
		return verdict{again: true, at: first{stream: m.Stream}}
	case isOpen(s) && !s.hearsay: // presence hears of a start before the log does: it may never have been stored
		return refuse(agora.InvalidRequest, "stream %q is open", m.Stream)
	case m.Indexed && m.Index != 0:
		return refuse(agora.InvalidRequest, "stream %q starts with index 0, not %d", m.Stream, m.Index)
	case l.open >= maxOpen:
		v := refuse(agora.RateLimited, "more than %d streams are open to one receiver", maxOpen)
		v.err.RetryAfter = retryAfter
		return v
	}
	return verdict{}
}

// repeats tells whether the index alone says that m was stored before. A number
// says so better, and would have.
func repeats(m *agora.Message, s stream) bool {
	return m.Indexed && m.N == 0 && s.counted && s.indexed && m.Index < s.next
}

// next checks the index of a part of an open stream.
func (l *ledger) next(m *agora.Message, s stream) verdict {
	if m.Indexed && m.Index == agora.NextIndex { // its id has told that it is not there
		m.Index, m.Indexed = s.next, s.counted
	}
	switch {
	case m.Part == agora.Abort || !s.counted:
		return verdict{}
	case repeats(m, s):
		return verdict{again: true, at: first{stream: m.Stream}}
	case m.Indexed && m.Index != s.next:
		return refuse(agora.InvalidRequest, "stream %q goes on with index %d, not %d", m.Stream, s.next, m.Index)
	case !m.Indexed && m.N == 0 && s.indexed && m.Part != agora.Cancel:
		return refuse(agora.InvalidRequest, "stream %q goes on with index %d, and this part has none", m.Stream, s.next)
	}
	return verdict{}
}

// proves tells whether the ledger would know m if it had been stored before.
func (l *ledger) proves(m *agora.Message) bool {
	if m.N != 0 {
		return l.exact
	}
	s := l.streams[m.Stream]
	return m.Indexed && s.read && s.counted // an abort alone does not tell how far the stream had come
}

// add reckons with m as stored.
func (l *ledger) add(m *agora.Message, f first, epoch uint64, now time.Time) {
	if m.N > l.lastN {
		l.number(m, f)
	}
	if m.N == 0 && (m.ID != "" || relates(m)) {
		l.loose = now
	}
	if m.ID != "" {
		l.remember(m.ID, f, now)
	}
	if relates(m) {
		l.step(m, epoch)
	}
}

func (l *ledger) number(m *agora.Message, f first) {
	if m.N > l.lastN+1 && (l.lastN != 0 || l.whole) {
		l.holes = append(l.holes, span{l.lastN + 1, m.N - 1})
	}
	l.lastN = m.N
	if l.blocked <= m.N {
		l.blocked = 0 // it has come: nothing beyond it is stored before
	}
	if l.numbers == nil {
		l.numbers = make([]first, maxNumbers)
	}
	l.numbers[m.N%maxNumbers] = f
}

func (l *ledger) remember(id string, f first, now time.Time) {
	if l.ids == nil {
		l.ids = make(map[string]first)
	}
	if _, ok := l.ids[id]; !ok {
		l.idAges = append(l.idAges, aged{id, now})
	}
	l.ids[id] = f
}

// step moves a stream on by one part.
func (l *ledger) step(m *agora.Message, epoch uint64) {
	s := l.streams[m.Stream]
	if m.Part == agora.Start {
		s = stream{kind: m.Kind, counted: true, indexed: m.Indexed, numbered: m.N != 0, phase: running}
	} else if s.phase == gone { // its start is not in the log any more
		s = stream{kind: m.Kind, indexed: m.Indexed, numbered: m.N != 0, phase: running}
	}
	s.epoch = epoch
	s.numbered = s.numbered && (m.N != 0 || m.Part == agora.Abort)
	switch {
	case m.Indexed:
		s.next, s.counted = m.Index+1, true
	case m.Part != agora.Abort:
		s.next++
	}
	switch m.Part {
	case agora.End, agora.Cancel:
		s.phase = over
	case agora.Abort:
		s.phase = aborted
	}
	l.set(m.Stream, s)
}

// set changes a stream, so that it can be undone.
func (l *ledger) set(name string, s stream) {
	old := l.streams[name]
	if n := len(l.undo); n == 0 || l.undo[n-1].name != name { // what it was before counts, not each step
		l.undo = append(l.undo, was{name, old})
	}
	l.put(name, old, s)
}

func (l *ledger) put(name string, old, s stream) {
	if isOpen(old) {
		l.open--
	}
	if isOpen(s) {
		l.open++
	}
	if s.phase == gone {
		delete(l.streams, name)
		return
	}
	if l.streams == nil {
		l.streams = make(map[string]stream)
	}
	l.streams[name] = s
}

func isOpen(s stream) bool { return s.phase == running || s.phase == broken }

// refuseAborted refuses a part of a stream that was aborted.
func refuseAborted(stream string) verdict {
	return refuse(agora.StreamAborted, "stream %q is over: a part of it could not be stored", stream)
}

func refuse(code agora.Code, format string, args ...any) verdict {
	return verdict{err: agora.Errorf(code, format, args...)}
}
