package relay

import (
	"errors"
	"fmt"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// Refuse settles a message that does not go into its lane, as err says: for the moment, so that the message must come
// again, or permanently. waits says that a caller waits for the answer; hole, that what the agent says next in the
// stream would go on here, over the hole that the message leaves. Refuse returns the answer to the frame: nil for a
// part of a stream that was answered for, unless a caller waits. A hole ends the stream for its receiver, but for two
// cases: the stream's start comes again as well, or only a number that was too much is in the way. Refuse does not
// block.
func (s *Sender) Refuse(m *agora.Message, err error, hole, waits bool) error {
	k, early := streamKey{s.boxOf(m.To, m.Stream), m.Stream}, errors.Is(err, errEarly)
	if !early && !waits && m.Part > agora.Start && m.Part != agora.Cancel && s.dropped(k, m.Part, m.N) {
		s.pass(m.To, m.N)
		return nil
	}
	err = s.undecided(m, err)
	s.refused(m, err)
	switch m.Part {
	case agora.Start:
		s.startRefused(k, m.N, err, hole)
	case agora.Chunk, agora.End:
		s.refuse(k, m.Part, m.N, err)
		if m.Part == agora.End {
			s.mu.Lock()
			s.past.unanswer(streamKey{m.To.Peer(), m.Stream})
			s.mu.Unlock()
		}
		if hole && !(early && s.misses(m)) {
			s.broken(k, m.N, err)
		}
	}
	return err
}

// misses reports whether a part of a stream was refused because a number before it was, as there is too much, and is
// expected under its own number: then nothing of the stream is lost.
func (s *Sender) misses(m *agora.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbers.misses(m.To.Peer(), m.Stream)
}

// refused notes that a numbered message was refused: for the moment, so that it must come again, or permanently.
func (s *laneSet) refused(m *agora.Message, err error) {
	switch e := agora.AsError(err); {
	case m.N == 0:
	case !e.Passes():
		s.pass(m.To, m.N)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.numbers.refused(m.To.Peer(), m.N, e.Code == agora.RateLimited)
	}
}

// undecided returns the answer to a message that is to be refused before it comes into its lane. It is refused for the
// moment only while the lane holds one with its number, which may be stored, or have to come again: refused for
// good the number would be used up, and the lane would wait for it in vain.
func (s *laneSet) undecided(m *agora.Message, err error) error {
	if m.N == 0 || agora.AsError(err).Code == agora.Unavailable {
		return err
	}
	s.mu.Lock()
	l := s.lanes[m.To]
	s.mu.Unlock()
	if l == nil || !l.Holds(m.N) {
		return err
	}
	return &agora.Error{
		Code: agora.Unavailable, RetryAfter: time.Second, Cause: err,
		Message: fmt.Sprintf("number %d is being stored, and can't be answered yet", m.N),
	}
}

// refuse remembers that a stream was answered for. A numbered part that was refused for the moment comes again under
// its number, and is told then that the stream is over: without receipt or error its sender would wait for ever.
func (s *streamSet) refuse(k streamKey, part agora.Part, n uint64, err error) {
	if part == agora.Whole || part.Ends() || comesAgain(n, err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.silence(k, 0)
}

// comesAgain reports whether what was refused comes again under its number.
func comesAgain(n uint64, err error) bool {
	return n > 0 && agora.AsError(err).Passes()
}

// startRefused notes that a start was refused before it came into its lane, as err says. One with a number that was
// refused for the moment comes again, and the parts behind it with it: where an earlier holder of the session had told
// presence of the stream, it need not have begun, and broken does not end it meanwhile. Where the start does not come
// again such a stream continues with nothing, and one that is open here is another.
func (s *streamSet) startRefused(k streamKey, n uint64, err error, hole bool) {
	s.mu.Lock()
	st, lost := s.open[k], !comesAgain(n, err)
	inherited := st != nil && st.lane == nil
	switch {
	case st == nil || st.state == streamEnding:
		if lost {
			s.past.silence(k, 0)
		}
	case lost:
		st.hears(startLost)
	default:
		st.hears(startComesAgain)
	}
	s.mu.Unlock()
	if inherited && lost && hole {
		s.broken(k, n, err)
	}
}

// broken ends a stream for its receiver of which a part was refused before it
// came into its lane, as err says: what follows would go on over a hole.
func (s *streamSet) broken(k streamKey, n uint64, err error) {
	s.mu.Lock()
	st := s.open[k]
	if st == nil || st.state == streamEnding || st.state == streamAwaited && comesAgain(n, err) || s.closed {
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if !st.pieces {
		s.refuse(k, agora.Chunk, n, err)
	}
	s.abort(k, st, agora.StreamAborted, func(broker.Result) {})
}

// Broken ends a stream for its receiver of which a part was refused before it
// came into its lane, as err says: what follows would go on over a hole.
func (s *Sender) Broken(to agora.Address, name string, n uint64, err error) {
	s.broken(streamKey{s.boxOf(to, name), name}, n, err)
}
