package ledger

import (
	"hash/crc32"
	"hash/fnv"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
)

// Take decides what becomes of m, whose place in the record would be index, and
// if it may be stored, reckons with it from now on.
func (l *Ledger) Take(m *agora.Message, index int, epoch uint64, now time.Time) Verdict {
	v := l.known(m)
	if v.Err == nil && m.N > l.lastN && m.N <= l.awaited {
		l.awaited = 0 // here it is again
	}
	if v.Again || v.Err != nil {
		return v
	}
	if IsStreamPart(m) {
		if v := l.follows(m, now); v.Again || v.Err != nil {
			return v
		}
	}
	proven := l.exact // the ledger would know m if it had been stored before
	if m.N == 0 {     // an abort alone does not tell how far a stream had come
		s := l.streams[m.Stream]
		proven = m.Indexed && s.counted && s.evidence == read
	}
	if now.Before(l.unsure) && !proven || m.Part == agora.Abort && l.streams[m.Stream].maybeOver {
		m.Again = true
	}
	l.add(m, First{n: m.N, index: index, Here: true, Stream: m.Stream}, epoch, now)
	return Verdict{Store: true}
}

// known finds what was stored before by its number or its id, and marks what may have been.
func (l *Ledger) known(m *agora.Message) Verdict {
	if guard.Numbers && m.N != 0 && m.N <= l.lastN {
		return l.reached(m)
	}
	if guard.Names && m.ID != "" {
		if f, ok := l.ids[m.ID]; ok {
			return Verdict{Again: true, At: f}
		}
	}
	if d, may := l.doubted[m.N]; may && m.N > l.lastN {
		if guard.Numbers && d.said != hashOf(m) {
			return refuse(agora.InvalidRequest, "number %d is another message's, which may be stored: number it anew", m.N)
		}
		m.Again = true
	}
	if guard.Order && l.awaited != 0 && m.N > l.awaited {
		v := refuse(agora.Unavailable, "number %d was refused and has not come again", l.awaited)
		v.Err.RetryAfter = RetryAfter
		return v
	}
	return Verdict{}
}

// reached is the verdict on a number that is not beyond the highest stored: it is there already, or was passed over.
func (l *Ledger) reached(m *agora.Message) Verdict {
	first := First{n: m.N, Stream: m.Stream}
	if len(l.numbers) == maxNumbers && l.numbers[m.N%maxNumbers].n == m.N {
		first = l.numbers[m.N%maxNumbers]
	}
	passed := l.holes.have(m.N)
	d, doubted := l.doubted[m.N]
	switch {
	case passed && l.streams[m.Stream].phase == aborted && IsStreamPart(m) && m.Part != agora.Start:
		return refuseAborted(m.Stream) // as it was refused the first time: the answer was lost
	case passed:
		return refuse(agora.InvalidRequest, "number %d was not stored and a later one was: number it anew", m.N)
	case doubted && d.said != hashOf(m):
		return refuse(agora.InvalidRequest, "number %d is another message's, which was stored after all: number it anew", m.N)
	case first.said != 0 && first.said != saying(m):
		return refuse(agora.InvalidRequest, "number %d is another message's, which is stored: number it anew", m.N)
	}
	return Verdict{Again: true, At: first}
}

// have reports whether a number lies in one of the spans.
func (h spans) have(n uint64) bool {
	return slices.ContainsFunc(h, func(s span) bool { return s.from <= n && n <= s.to })
}

// follows checks a part against its stream.
func (l *Ledger) follows(m *agora.Message, now time.Time) Verdict {
	s := l.streams[m.Stream]
	if m.Part == agora.Start {
		return l.starts(m, s)
	}
	switch s.phase {
	case unknown:
		if now.Before(l.unsure) && m.Part != agora.Abort {
			l.set(m.Stream, stream{kind: m.Kind, phase: running, maybeOver: true})
			return giveUp(m.Stream)
		}
		return refuse(agora.StreamNotFound, "stream %q is not open", m.Stream)
	case unstarted, doubted:
		return s.awaitsStart(m)
	case broken: // not permanently before the abort is stored: a successor might let the stream go on without this part
		return Verdict{Err: Unavailable(nil)}
	case aborted:
		return refuseAborted(m.Stream)
	case over:
		if repeats(m, s) {
			return s.again(m)
		}
		return refuse(agora.StreamNotFound, "stream %q has ended", m.Stream)
	}
	if s.kind != m.Kind {
		return refuse(agora.InvalidRequest, "stream %q was started by another type of message", m.Stream)
	}
	return l.next(m, s)
}

// starts checks a start.
func (l *Ledger) starts(m *agora.Message, s stream) Verdict {
	switch {
	case s.phase != unknown && repeats(m, s):
		return s.again(m)
	case s.phase.isOpen() && !s.maybeOver: // presence hears of a start before the log does: it may never have been stored
		return refuse(agora.InvalidRequest, "stream %q is open", m.Stream)
	case m.Indexed && m.Index != 0:
		return refuse(agora.InvalidRequest, "stream %q starts with index 0, not %d", m.Stream, m.Index)
	case l.open >= maxOpen:
		return refuse(agora.RateLimited, "more than %d streams are open to one receiver", maxOpen) // permanently: the ends of others stand behind it
	}
	return Verdict{}
}

// awaitsStart checks a part of a stream whose start was refused for the moment.
func (s stream) awaitsStart(m *agora.Message) Verdict {
	switch {
	case m.Part == agora.Abort && s.phase == doubted:
		return Verdict{}
	case s.numbered: // while the start's number is waited for, nothing behind it gets here: that was used up
		return refuse(agora.StreamNotFound, "stream %q is not open", m.Stream)
	}
	return Verdict{Err: Unavailable(nil)} // the start may come again, and this part with it
}

// repeats reports whether the index alone says that m was stored before. A number
// says so better, and would have.
func repeats(m *agora.Message, s stream) bool {
	return m.Indexed && m.N == 0 && s.counted && s.indexed && m.Index < s.next
}

// again is the answer to a part that repeats one by its index: the latest are known by what they said, too.
func (s stream) again(m *agora.Message) Verdict {
	if s.said == nil {
		return Verdict{Again: true, At: First{Stream: m.Stream}}
	}
	if at := s.said[m.Index%maxSaid]; at.saying != 0 && at.index == m.Index && at.saying != saying(m) {
		return refuse(agora.InvalidRequest, "index %d of stream %q is another part's, which is stored", m.Index, m.Stream)
	}
	return Verdict{Again: true, At: First{Stream: m.Stream}}
}

// next checks the index of a part of an open stream.
func (l *Ledger) next(m *agora.Message, s stream) Verdict {
	if m.Indexed && m.Index == agora.NextIndex { // its id has told that it is not there
		m.Index, m.Indexed = s.next, s.counted
	}
	switch {
	case m.Part == agora.Abort || !s.counted:
		return Verdict{}
	case repeats(m, s):
		return s.again(m)
	case m.Indexed && m.Index != s.next:
		return refuse(agora.InvalidRequest, "stream %q goes on with index %d, not %d", m.Stream, s.next, m.Index)
	case !m.Indexed && m.N == 0 && s.indexed && m.Part != agora.Cancel:
		return refuse(agora.InvalidRequest, "stream %q goes on with index %d, and this part has none", m.Stream, s.next)
	}
	return Verdict{}
}

// giveUp ends a stream of which nothing is left where retention has cut the log. It may have ended, or be open to its
// receiver still, and nobody can tell: both ends hear that it is over. The receiver's abort is marked, as it may have
// had the end.
func giveUp(stream string) Verdict {
	v := refuse(agora.StreamAborted, "stream %q is over: nothing of it is left in the log", stream)
	v.Abort = true
	return v
}

// refuseAborted refuses a part of a stream that was aborted.
func refuseAborted(stream string) Verdict {
	return refuse(agora.StreamAborted, "stream %q is over: a part of it could not be stored", stream)
}

// RetryAfter is the pause that agents get with UNAVAILABLE.
const RetryAfter = time.Second

// Unavailable says that a message was refused for the moment.
func Unavailable(cause error) *agora.Error {
	return &agora.Error{Code: agora.Unavailable, Message: "the message could not be stored now", RetryAfter: RetryAfter, Cause: cause}
}

func refuse(code agora.Code, format string, args ...any) Verdict {
	return Verdict{Err: agora.Errorf(code, format, args...)}
}

// saying tells what was said under a number or an index from something else, in so few bits that every number can keep
// it: a checksum, which is never 0. An event is known by its key, as an edge may put its own clock's time into the body
// each time that it comes; and what stream it is of does not count, as an edge may have named that itself.
func saying(m *agora.Message) uint32 {
	var room [128]byte
	name := append(room[:0], byte(m.Kind), byte(m.Part))
	sum, castagnoli := uint32(0), crc32.MakeTable(crc32.Castagnoli)
	if m.Kind == agora.Event && m.ID != "" {
		name = append(name, m.ID...)
	} else {
		sum = crc32.Update(sum, castagnoli, m.Body)
	}
	return crc32.Update(sum, castagnoli, name) | 1
}

// hashOf tells a message from another, as saying does, in more bits and with its stream: few are kept, and who takes
// something else for stored by it loses that. A message that has a key is known by it alone.
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
