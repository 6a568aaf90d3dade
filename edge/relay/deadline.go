package relay

import (
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
)

// expire arms a stream's or request's deadline, if it has one. The caller holds mu.
func (s *streamSet) expire(k streamKey, st *stream, deadline time.Time, request bool) {
	if deadline.IsZero() {
		return
	}
	st.deadline = deadline
	left := max(0, deadline.Sub(s.relay.cfg.Broker.Now()))
	st.timer = time.AfterFunc(left, func() { s.expired(k, st, request) })
}

// await watches for the reply to a request.
func (s *streamSet) await(m *agora.Message, o Options) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := streamKey{m.To, o.Request}
	st := &stream{kind: m.Kind, frame: o.Frame}
	put(&s.asked, k, st)
	s.expire(k, st, m.Meta.Deadline, true)
}

// unasked forgets a request that was refused before it came into its lane.
func (s *streamSet) unasked(to agora.Address, request string, m *agora.Message) {
	if m.Part == agora.Whole && !m.Meta.Deadline.IsZero() {
		s.replied(to, request)
	}
}

// late reports whether nobody waits for a reply any more: of a request that failed, as its time was over before.
func (s *streamSet) late(to agora.Address, request string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[streamKey{to, request}] == nil
}

// replied notes that a reply has come: the deadline of the request that it
// answers no longer counts.
func (s *streamSet) replied(from agora.Address, request string) {
	s.mu.Lock()
	k := streamKey{from, request}
	st := s.asked[k]
	delete(s.asked, k)
	if st != nil {
		stopTimer(st)
	}
	s.mu.Unlock()
	if st != nil {
		s.relay.streamClosed(*s.cfg.Claim, from, requestStream(request))
	}
}

// undelivered notes that a request will not be answered, as its receiver is not given the frame that it came in: its
// deadline no longer counts.
func (s *streamSet) undelivered(to agora.Address, frame string) {
	var requests []string
	s.mu.Lock()
	for k, st := range s.asked {
		if k.to == to && frame != "" && (st.frame == frame || k.stream == frame) {
			requests = append(requests, k.stream)
		}
	}
	s.mu.Unlock()
	for _, name := range requests {
		s.replied(to, name)
	}
}

// expired tells both ends that a deadline has passed. The record in the lane
// decides of a stream: one that has ended meanwhile has not timed out. While the log can't be reached the sender is
// told nevertheless, of a stream once that is sure.
func (s *streamSet) expired(k streamKey, st *stream, request bool) {
	s.mu.Lock()
	current := s.open[k]
	if request {
		current = s.asked[k]
	}
	if s.closed || current != st {
		s.mu.Unlock()
		return
	}
	if request {
		delete(s.asked, k)
	} else {
		s.past.silence(k, 0) // what the agent still sends of it is dropped
	}
	s.timers.Add(1)
	s.mu.Unlock()
	defer s.timers.Done()
	if request {
		s.tellLate(k, st)
		return
	}
	s.abort(k, st, agora.Timeout, func(res broker.Result) {
		if res.Err == nil || agora.AsError(res.Err).Code == agora.Unavailable {
			s.cfg.Asker.Told(timedOut(k.to, k.stream, st.frame))
		}
	})
}

// tellLate tells the sender that the time is over, and the other end that nobody waits for the reply any more.
func (s *streamSet) tellLate(k streamKey, st *stream) {
	s.relay.streamClosed(*s.cfg.Claim, k.to, requestStream(k.stream))
	m := agora.AbortBody{Code: agora.Timeout, Request: k.stream}.Message()
	m.Kind, m.From, m.To = agora.Control, s.cfg.Claim.Agent, k.to
	s.cfg.Asker.Told(timedOut(k.to, "", st.frame))
	s.put(k.to, m, func(broker.Result) {})
}

// stopDeadlines has none pass any more; mu is held.
func (s *streamSet) stopDeadlines() {
	for _, st := range s.open {
		stopTimer(st)
	}
	for _, st := range s.asked {
		stopTimer(st)
	}
}

func timedOut(to agora.Address, stream, frame string) Sent {
	return Sent{To: to.Peer(), Stream: stream, Frame: frame, Err: agora.Errorf(agora.Timeout, "the deadline has passed")}
}

// requestMark begins the name under which presence keeps a request with a
// deadline; no stream of an agent's begins so.
const requestMark = "\x00"

func requestStream(id string) string { return requestMark + id }

func requestID(stream string) (string, bool) {
	if len(stream) == 0 || stream[:1] != requestMark {
		return "", false
	}
	return stream[1:], true
}
