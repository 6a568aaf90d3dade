package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// OpenStream is a stream that has a start and no end yet.
type OpenStream struct {
	Stream  string
	Kind    agora.Kind
	Indexed bool      // its parts prove that none is missing, by index or by number
	Since   time.Time // when it was started, so that retention by age can be told; zero when unknown
}

// reading is what the log told beside the parts that were read from it.
type reading struct {
	first  uint64 // the lowest number that was read, where none was known before; 0 for none
	cut    bool   // numbers below that, or between those that were read, may have been stored
	marked bool   // parts were read that an earlier holder could not tell from what retention had taken
	echo   bool   // the part with the highest number is one of those: what is beyond it may have been stored before
}

// fold notes a part that was read; highest says that no number before was as high as its own.
func (r *reading) fold(m *agora.Message, highest bool) {
	r.marked = r.marked || m.Again
	if highest {
		r.echo = m.Again
	}
}

// Fold reckons with a part found in the log. A part that is marked as stored again proves nothing of what is beyond it:
// its holder could not know what retention had taken, and that may be more than the sender has said again so far.
func (l *Ledger) Fold(m *agora.Message, epoch uint64, now time.Time) {
	l.log.fold(m, m.N > l.lastN)
	l.add(m, First{n: m.N, seq: m.Seq >> agora.SeqShift, index: int(m.Seq & (record.MaxParts - 1)), Stream: m.Stream}, epoch, now)
	if IsStreamPart(m) {
		s := l.streams[m.Stream]
		if s.evidence == torn { // it had not ended before this part
			s.maybeOver = false
		}
		if s.evidence = read; m.Again {
			s.evidence = echoed
		}
		l.streams[m.Stream] = s
		l.retire(m.Stream)
	}
	l.undo = l.undo[:0]
}

// Tear says that records may be gone from the log that followed those folded so far: what is folded next does not
// follow them. Numbers and streams may have gone on there, and streams may have ended.
func (l *Ledger) Tear() {
	l.lastN, l.log.cut = l.kept, true
	l.holes = slices.DeleteFunc(l.holes, func(h span) bool { return h.from > l.kept })
	for name, s := range l.streams {
		if s.phase.isOpen() {
			s.evidence, s.maybeOver, s.counted = torn, true, false
			l.streams[name] = s
		}
	}
}

// Heritage is what is known of a lane beside what the log says.
type Heritage struct {
	Open   []OpenStream          // streams that presence knows to be open: asked only where retention has cut the log
	Dirty  uint64                // the highest epoch that ended without handing over; 0 for none
	Cut    bool                  // retention has taken records from the log's beginning
	Unsure time.Time             // where it has, here or for an earlier holder: until then what comes may be stored already, unknown to us
	Aged   func(OpenStream) bool // reports whether all of a stream may have grown too old to be in the log
}

// Inherit settles, once the log is read, what becomes of the streams that an earlier holder left.
func (l *Ledger) Inherit(h Heritage) {
	if l.lastN == 0 || l.lastN > l.kept { // else nothing was read that tells more than what is known
		l.exact = l.lastN != 0 && !l.log.echo
	}
	if h.Cut || l.log.marked {
		l.unsure = h.Unsure
	} else if !l.log.cut && l.kept == 0 { // all of the lane was read: what is lower was refused, and that may not have been heard
		if l.log.first > 1 {
			l.holes = slices.Insert(l.holes, 0, span{1, l.log.first - 1})
		}
		l.whole = true
	}
	for _, o := range h.Open {
		if _, ok := l.streams[o.Stream]; ok || !h.Cut && !h.Aged(o) {
			continue
		}
		l.set(o.Stream, stream{kind: o.Kind, phase: running, indexed: o.Indexed, numbered: o.Indexed, maybeOver: true})
		if !o.Indexed && h.Dirty > 0 {
			l.breakStream(o.Stream)
		}
	}
	for name, s := range l.streams {
		if s.phase == running && !s.proven() && s.epoch != 0 && s.epoch <= h.Dirty {
			l.breakStream(name)
		}
	}
	slices.Sort(l.toAbort)
	l.undo = l.undo[:0]
}

// Running returns the streams that are open, in the order of their names.
func (l *Ledger) Running() []OpenStream {
	var open []OpenStream
	for name, s := range l.streams {
		if s.phase == running {
			open = append(open, OpenStream{Stream: name, Kind: s.kind, Indexed: s.proven()})
		}
	}
	slices.SortFunc(open, func(a, b OpenStream) int { return strings.Compare(a.Stream, b.Stream) })
	return open
}
