package broker

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
)

// commit says that what was taken since begin is stored, in the record at seq.
func (l *ledger) commit(ms []agora.Message, seq uint64, now time.Time, window time.Duration) {
	for i := range ms {
		l.settle(&ms[i], first{n: ms[i].N, seq: seq, index: i, stream: ms[i].Stream})
	}
	for _, w := range l.undo {
		if !isOpen(l.streams[w.name]) && isOpen(w.stream) || w.stream.phase == gone {
			l.retire(w.name)
		}
	}
	l.undo = l.undo[:0]
	l.tidy()
	if n := len(l.holes); n > maxHoles {
		l.holes = slices.Delete(l.holes, 0, n-maxHoles)
	}
	l.forget(now, window)
}

// tidy forgets those streams over a hole that have their abort, or never had a start.
func (l *ledger) tidy() {
	l.holed = slices.DeleteFunc(l.holed, func(name string) bool { return l.streams[name].phase != broken })
}

// settle fills in where a message that is known by id or number stands.
func (l *ledger) settle(m *agora.Message, f first) {
	if m.ID != "" {
		if _, ok := l.ids[m.ID]; ok {
			l.ids[m.ID] = f
		}
	}
	if m.N != 0 && l.numbers != nil {
		l.numbers[m.N%maxNumbers] = f
	}
}

// retire puts an ended stream among those to be forgotten one day.
func (l *ledger) retire(name string) {
	if s := l.streams[name]; s.phase == over || s.phase == aborted || s.phase == unstarted {
		l.ended = append(l.ended, name)
	}
	for len(l.ended) > maxEnded {
		if s := l.streams[l.ended[0]]; !isOpen(s) {
			delete(l.streams, l.ended[0])
		}
		l.ended = l.ended[1:]
	}
}

// forget drops ids that are older than the window.
func (l *ledger) forget(now time.Time, window time.Duration) {
	for len(l.idAges) > 0 && (len(l.idAges) > maxIDs || now.Sub(l.idAges[0].at) > window) {
		delete(l.ids, l.idAges[0].id)
		l.idAges = l.idAges[1:]
	}
}

// rollback returns to begin: what was taken since then is not stored.
func (l *ledger) rollback(ms []agora.Message) {
	for _, w := range slices.Backward(l.undo) {
		l.put(w.name, l.streams[w.name], w.stream)
	}
	l.undo = l.undo[:0]
	l.tidy()
	for i := range ms {
		id := ms[i].ID
		if f, ok := l.ids[id]; ok && f.here {
			delete(l.ids, id)
			l.idAges = slices.DeleteFunc(l.idAges, func(a aged) bool { return a.id == id })
		}
	}
	l.lastN, l.blocked, l.holes = l.old.lastN, l.old.blocked, l.holes[:l.old.holes]
}

// lose says that m was refused for the moment and not stored. Its stream can't
// go on over the hole, and numbers beyond m's must not overtake it.
func (l *ledger) lose(m *agora.Message) {
	if m.N > l.lastN && (l.blocked == 0 || m.N < l.blocked) {
		l.blocked = m.N
	}
	switch {
	case !relates(m):
	case m.Part != agora.Start:
		l.hole(m.Stream)
	case m.N == 0: // else the number says that what follows must wait
		l.unstart(m.Stream)
	}
}

// unstart notes that a stream will not begin before its start has come again.
func (l *ledger) unstart(name string) {
	if old := l.streams[name]; name != "" && old.phase == gone {
		l.put(name, old, stream{phase: unstarted})
		l.retire(name)
	}
}

// pass says that a number will not come again. A lower one that was refused still will.
func (l *ledger) pass(n uint64) {
	if l.blocked == n {
		l.blocked = 0
	}
	if l.old.blocked == n {
		l.old.blocked = 0
	}
}

// doubt remembers what was said under a number whose sender was refused, though it may be stored:
// the sender is free to say something else under it, and must not take that for stored.
func (l *ledger) doubt(m *agora.Message) {
	if m.N == 0 {
		return
	}
	if l.doubted == nil || len(l.doubted) >= maxDoubted {
		l.doubted = make(map[uint64]uint64)
	}
	l.doubted[m.N] = hashOf(m)
}

const maxDoubted = 4 * record.MaxParts // numbers; a lane has one record in doubt at a time

// hashOf tells a message from another: by its key where it has one, as an edge may put its own clock's time into the
// body each time that it comes.
func hashOf(m *agora.Message) uint64 {
	h := fnv.New64a()
	h.Write([]byte{byte(m.Kind), byte(m.Part)})
	if m.ID != "" {
		h.Write([]byte(m.ID))
		return h.Sum64()
	}
	h.Write([]byte(m.Stream))
	h.Write([]byte{0})
	h.Write([]byte(m.Media))
	h.Write(m.Body)
	return h.Sum64()
}

// hole marks an open stream as one to be aborted.
func (l *ledger) hole(name string) {
	if s := l.streams[name]; s.phase == running {
		s.phase = broken
		l.streams[name] = s
		l.holed = append(l.holed, name)
	}
}

// abort returns the part that ends a stream for its receiver.
func (l *ledger) abort(name string, again bool) agora.Message {
	m := agora.AbortBody{Code: agora.StreamAborted}.Message()
	m.Kind, m.Stream, m.Again = l.streams[name].kind, name, again
	return m
}

// fold reckons with a part found in the log.
func (l *ledger) fold(m *agora.Message, epoch uint64, now time.Time) {
	l.add(m, first{n: m.N, seq: m.Seq >> agora.SeqShift, index: int(m.Seq & (record.MaxParts - 1)), stream: m.Stream}, epoch, now)
	if relates(m) {
		s := l.streams[m.Stream]
		s.read = true
		l.streams[m.Stream] = s
		l.retire(m.Stream)
	}
	l.undo = l.undo[:0]
}

// inherit settles, once the log is read, what becomes of the streams that an earlier holder left.
// cut says that retention has taken records from the log's beginning.
func (l *ledger) inherit(cfg *LaneConfig, cut bool, lost func(OpenStream) bool) {
	for _, o := range cfg.Open {
		if _, ok := l.streams[o.Stream]; ok || !cut && !lost(o) {
			continue
		}
		l.set(o.Stream, stream{kind: o.Kind, phase: running, indexed: o.Indexed, numbered: o.Indexed, hearsay: true})
		if !o.Indexed && cfg.Dirty > 0 {
			l.hole(o.Stream)
		}
	}
	for name, s := range l.streams {
		if s.phase == running && !s.proven() && s.epoch != 0 && s.epoch <= cfg.Dirty {
			l.hole(name)
		}
	}
	slices.Sort(l.holed)
	l.undo = l.undo[:0]
}

// running returns the streams that are open, in the order of their names.
func (l *ledger) running() []OpenStream {
	var open []OpenStream
	for name, s := range l.streams {
		if s.phase == running {
			open = append(open, OpenStream{Stream: name, Kind: s.kind, Indexed: s.proven()})
		}
	}
	slices.SortFunc(open, func(a, b OpenStream) int { return strings.Compare(a.Stream, b.Stream) })
	return open
}
