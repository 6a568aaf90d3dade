package ledger

import "github.com/agora-relay/agora"

// Losses are parts that were refused for the moment while the ledger could not be asked. The zero value is none.
type Losses struct {
	parts  []lostPart
	beyond bool
}

// lostPart is what must be remembered of a part that was refused.
type lostPart struct {
	n      uint64
	stream string
	start  bool   // the stream's start was the first of it, and has no number
	begins uint64 // the number of the stream's start, if that was the first of it; 0 for none
	alone  bool   // nothing of the stream but that start
}

// Add remembers a refused part: of each stream one, and the lowest number.
func (l *Losses) Add(m *agora.Message) {
	p := lostPart{n: m.N}
	if IsStreamPart(m) {
		p.stream, p.start = m.Stream, m.Part == agora.Start && m.N == 0
		if p.alone = m.Part == agora.Start && m.N != 0; p.alone {
			p.begins = m.N
		}
	}
	for i := range l.parts {
		q := &l.parts[i]
		if q.stream == p.stream {
			if p.n != 0 && (q.n == 0 || p.n < q.n) {
				q.n = p.n
			}
			q.alone = q.alone && p.alone
			return
		}
	}
	switch {
	case p == (lostPart{}):
	case len(l.parts) >= maxOpen: // more than can be open, and more than is kept
		l.beyond = true
	default:
		l.parts = append(l.parts, p)
	}
}

// Pass says that a number will not come again.
func (l *Losses) Pass(n uint64) {
	for i := range l.parts {
		if l.parts[i].n == n {
			l.parts[i].n = 0
		}
	}
}

// Any reports whether a part was lost.
func (l *Losses) Any() bool { return len(l.parts) > 0 }

// Beyond reports whether more was lost than can be settled: the lane can't go on.
func (l *Losses) Beyond() bool { return l.beyond }

// Clear forgets the parts.
func (l *Losses) Clear() { l.parts = nil }

// SettleLosses loses what was refused while the ledger could not be asked.
func (l *Ledger) SettleLosses(lost *Losses) {
	for _, p := range lost.parts {
		l.unbegin(p.stream, p.begins)
		m := agora.Message{N: p.n}
		if !p.alone {
			m.Kind, m.Part, m.Stream = agora.Request, agora.Chunk, p.stream
		}
		l.Lose(&m)
		if p.start {
			l.unstart(p.stream)
		}
	}
	lost.Clear()
	l.forgetAborted()
}
