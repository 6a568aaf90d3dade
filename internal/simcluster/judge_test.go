package simcluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agora-relay/agora"
)

// judge compares every log with what was said, and every box with its log.
func (w *world) judge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.markRefused()
	for to, log := range w.logs {
		before := len(w.failures)
		w.judgeLog(to, log)
		if len(w.failures) > before {
			w.show(to, log)
		}
	}
	for _, a := range w.agents {
		w.judgeBox(a, a.boxes[""])
	}
	w.judgeRosters()
}

// show notes what a log reads.
func (w *world) show(to agora.Address, log []agora.Message) {
	for i := range log {
		m := &log[i]
		ord := 0
		if uid, ok := uidOf(m); ok {
			ord = w.parts[uid].ord
		}
		w.note("%s %d: %s says %.20s (its %d), n %d, kind %d, part %d of %q, again %v", to.Name(), m.Seq, m.From, m.Body, ord, m.N, m.Kind, m.Part, m.Stream, m.Again)
	}
}

// showAll notes every log, what has come of it to whom, and what is not known to be stored, for whom a stall puzzles.
func (w *world) showAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for to, log := range w.logs {
		w.show(to, log)
	}
	for _, a := range w.agents {
		for _, b := range a.boxes {
			w.note("%s at %s: from %d, last %d, gaps %v, came %v", a.id, b.to.Name(), b.from, b.last, b.gaps, b.came)
		}
		for to, l := range a.lanes {
			for i, p := range l.made {
				if i >= l.stored {
					w.note("%s to %s: %d (its %d), n %d, kind %d, part %d of %q, taken %v refused %v receipt %v failed %v answered %v",
						a.id, to.Name(), p.uid, p.ord, p.n, p.kind, p.part, p.stream, p.taken, p.refused, p.receipt, p.failed, p.answered)
				}
			}
		}
	}
}

// told is a stream as its log tells it.
type told struct {
	has   map[int]bool // its parts that stand there
	from  int          // those before it may have been in a gap
	cut   bool         // and those up to its next part, too
	ended agora.Part   // 0: not yet
}

// judgeLog checks order, uniqueness, streams, and that what was receipted is there.
func (w *world) judgeLog(to agora.Address, log []agora.Message) {
	ords, found, streams := map[agora.AgentID]int{}, map[int]bool{}, map[string]*told{}
	lanes := map[*lane]int{}
	gap := false
	for i := range log {
		m := &log[i]
		if m.Kind == agora.Gap {
			gap = true
			for _, s := range streams {
				s.cut = true
			}
		}
		w.judgeStream(to, m, streams, gap)
		uid, ok := uidOf(m)
		if !ok {
			continue
		}
		p := w.parts[uid]
		if p.lane.to != to || p.from.id != m.From {
			w.failLocked("%s: message %d is not what was sent", to.Name(), uid)
		}
		if found[uid] && !m.Again {
			w.failLocked("%s: message %d of %s is stored twice", to.Name(), uid, m.From)
		}
		before := ords[m.From]
		if w.lax { // two sessions of an agent may go on side by side
			before = lanes[p.lane]
		}
		if late := p.refused && p.from.names == byIndex; p.ord < before && !m.Again && !late {
			w.failLocked("%s: message %d (%d of %s) stands behind %d", to.Name(), uid, p.ord, m.From, before)
		}
		found[uid] = true
		ords[m.From], lanes[p.lane] = max(ords[m.From], p.ord), max(lanes[p.lane], p.ord)
	}
	for _, p := range w.parts[1:] {
		if p.lane.to != to || !p.receipt || found[p.uid] || gap || p.lane.doubt {
			continue
		}
		if s := streams[p.stream]; p.stream == "" || s == nil || s.ended == agora.End || s.ended == 0 {
			w.failLocked("%s: message %d of %s (n %d, part %d of %q) was said to be stored, and is not", to.Name(), p.uid, p.from.id, p.n, p.part, p.stream)
		}
	}
	for name, s := range streams {
		if s.ended == 0 && !w.endless && !gap {
			w.failLocked("%s: stream %s never ended", to.Name(), name)
		}
	}
}

// unended names a stream that has not ended; empty when all have. Where presence lost everything, some leases go by
// before that.
func (w *world) unended() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for to, log := range w.logs {
		if w.endless {
			break
		}
		ended := map[string]bool{}
		for i := range log {
			m := &log[i]
			if m.Kind == agora.Gap {
				clear(ended)
				break
			}
			if m.Stream != "" && m.Kind != agora.Control && m.Kind != agora.Receipt {
				ended[m.Stream] = ended[m.Stream] || m.Part.Ends()
			}
		}
		for name, is := range ended {
			if !is {
				return fmt.Sprintf("stream %s to %s has not ended", name, to.Name())
			}
		}
	}
	return ""
}

// judgeStream checks one part against its stream. What is marked may stand there a second time, and be of a stream that
// has ended; an abort so marked may be of one that never began.
func (w *world) judgeStream(to agora.Address, m *agora.Message, streams map[string]*told, gap bool) {
	if m.Stream == "" || m.Kind == agora.Control || m.Kind == agora.Receipt || m.Kind == agora.Gap {
		return
	}
	s := streams[m.Stream]
	switch {
	case s == nil && m.Part != agora.Start && !gap && !(m.Again && m.Part == agora.Abort):
		w.failLocked("%s: stream %s begins with part %d", to.Name(), m.Stream, m.Part)
		fallthrough
	case s == nil:
		s = &told{has: map[int]bool{}, cut: gap}
		streams[m.Stream] = s
	case m.Part == agora.Start && !m.Again:
		w.failLocked("%s: stream %s begins twice", to.Name(), m.Stream)
	}
	if s.ended != 0 && !m.Again {
		w.failLocked("%s: part %d of stream %s after its end by %d", to.Name(), m.Part, m.Stream, s.ended)
	}
	if m.Part.Ends() {
		s.ended = m.Part
	}
	if uid, ok := uidOf(m); ok {
		w.judgeHoles(to, w.parts[uid], s)
	}
}

// judgeHoles checks that all that was said of a stream before p stands before it. A cancel stands behind a start that
// is said to be refused though it is stored, as that came again when presence, which had lost everything, knew its
// addressee no more: the edge has dropped what is between.
func (w *world) judgeHoles(to agora.Address, p *part, s *told) {
	if p.part == agora.Cancel && slices.ContainsFunc(p.lane.made, func(q *part) bool { return q.stream == p.stream && q.part == agora.Start && q.failed }) {
		return
	}
	if s.cut {
		s.from, s.cut = p.pos, false
	}
	for _, q := range p.lane.made {
		if q.stream == p.stream && q.pos >= s.from && q.pos < p.pos && !s.has[q.pos] && (q.taken || p.from.names != plainly) {
			w.failLocked("%s: stream %s goes on with part %d over a hole at %d", to.Name(), p.stream, p.pos, q.pos)
			break
		}
	}
	s.has[p.pos] = true
}

// judgeBox checks that everything in the log of a box came to its agent, or it was told that it did not.
func (w *world) judgeBox(a *agent, b *box) {
	if miss := w.missing(a, b); miss != "" {
		w.failLocked("%s", miss)
	}
}

// missing says what of a box's log has not come to its agent; empty when all has.
func (w *world) missing(a *agent, b *box) string {
	for i := range w.logs[b.to] {
		m := &w.logs[b.to][i]
		if m.Seq <= b.from || b.seen[m.Seq] || b.told(m.Seq) || m.Kind == agora.Gap || m.Kind == agora.Control || m.Kind == agora.Roster {
			continue
		}
		if r, err := m.ReceiptBody(); err == nil && r.Session != "" && !strings.HasPrefix(a.token, r.Session+".") {
			continue // of a number of a session that is over: nobody is told
		}
		if m.Stream != "" && w.silent[silentKey(a.id, m.From, m.Stream)].covers(m.Seq) {
			continue
		}
		return fmt.Sprintf("%s never got position %d of %s (%s, kind %d), its last is %d", a.id, m.Seq, b.to.Name(), m.Body, m.Kind, b.last)
	}
	return ""
}
