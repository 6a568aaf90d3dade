package relay

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// SenderConfig names the session that sends.
type SenderConfig struct {
	Claim     *presence.Claim // which does not change
	Principal string          // whose it is, beside its agent; empty where nobody has asked
	Dirty     uint64          // the highest epoch that ended without handing over
	Deposed   func()          // the claim was taken; called at most once a lane, never blocking
	// Asker is told of what is sent without an asker of its own, and of a deadline that has passed where the other end was told: of a stream, or of a
	// request by the id of its frame.
	Asker Asker
}

// Sender is what one session sends, to whomever: a lane each, one window for
// all. Its methods may be called at the same time; the order of messages to
// one addressee is that of the calls to Send.
type Sender struct {
	streamSet
	boxes *boxes // of calls that the agent was asked; nil while there were none. The lock of the laneSet guards it
}

// Sender returns the sender of a session, and the lanes that earlier holders of that have used. Close it when the session is over here.
func (r *Relay) Sender(cfg SenderConfig, lanes []presence.Lane) *Sender {
	s := new(Sender)
	s.relay, s.cfg, s.window.size = r, cfg, r.cfg.InFlight
	s.mu.Lock()
	for _, l := range lanes {
		s.inherit(l)
	}
	s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.senders[&s.laneSet] = struct{}{}
	return s
}

// inherit takes over what an earlier holder of the session had under way.
func (s *Sender) inherit(l presence.Lane) {
	put(&s.used, l.To, nil)
	for _, o := range l.Open {
		k := streamKey{l.To, o.Stream}
		st := &stream{key: k, kind: o.Kind, indexed: o.Indexed, receipts: o.Receipts}
		if id, ok := requestID(o.Stream); ok {
			k.stream = id
			put(&s.asked, k, st)
			s.expire(k, st, o.Deadline, true)
			continue
		}
		s.used[l.To] = append(s.used[l.To], o)
		s.opens(k, st)
		s.expire(k, st, o.Deadline, false)
		if l.To.IsBox() {
			s.known().resume(l.To, o.Stream)
		}
	}
}

// Close ends every lane and deadline here; what is not stored is answered
// with UNAVAILABLE. The session may go on elsewhere.
func (s *Sender) Close() {
	s.mu.Lock()
	closed := s.closed
	s.uncount(len(s.open))
	s.closed = true
	s.stopDeadlines()
	s.mu.Unlock()
	if closed {
		return
	}
	s.relay.mu.Lock()
	delete(s.relay.senders, &s.laneSet)
	s.relay.mu.Unlock()
	s.closeAll()
	s.timers.Wait()
}

// Sends tells whether a stream to an address is open, and its kind. Named by its box it is the answer of that call, not
// the call's request of the same name.
func (s *Sender) Sends(to agora.Address, name string) (agora.Kind, bool) {
	at := s.boxOf(to.Peer(), name)
	switch {
	case !to.IsBox():
		to = at
	case at.IsBox() && at != to:
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.open[streamKey{to, name}]; st != nil {
		return st.kind, true
	}
	return 0, false
}

// Cancelled closes a stream that its receiver has cancelled: what the agent
// still sends of it is dropped in silence. It returns false when the stream
// had come to its end already: then the cancel is nobody's news.
func (s *Sender) Cancelled(to agora.Address, name string) bool {
	return s.cancelled(s.boxOf(to, name), name)
}

// Broken ends a stream for its receiver of which a part was refused before it
// came into its lane, as err says: what follows would go on over a hole.
func (s *Sender) Broken(to agora.Address, name string, n uint64, err error) {
	s.broken(streamKey{s.boxOf(to, name), name}, n, err)
}
