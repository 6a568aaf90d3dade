package edge

import (
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/presence"
)

// sender returns the session's sender, which is made when something is asked of it for the
// first time: most agents listen, and a sender is as large as an inbox.
func (s *Session) sender() *relay.Sender {
	if out := s.outgoing.Load(); out != nil {
		return out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outgoing.Load() == nil {
		s.outgoing.Store(s.newSender(nil))
	}
	return s.outgoing.Load()
}

// newSender returns a sender that goes on with the lanes of earlier holders.
func (s *Session) newSender(lanes []presence.Lane) *relay.Sender {
	return s.node.relay.Sender(relay.SenderConfig{
		Claim: &s.claim, Lanes: lanes, Dirty: s.unclean, Deposed: s.laneLost, Told: s.told, TimedOut: s.timedOut,
	})
}

// lanes returns the lanes that the session has used, with their open streams.
func (s *Session) lanes() []presence.Lane {
	if out := s.outgoing.Load(); out != nil {
		return out.Lanes()
	}
	return nil
}
