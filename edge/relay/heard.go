package relay

import "github.com/agora-relay/agora"

// Heard notes a message that has come to the agent, before the agent is given it: what it says of the agent's
// own streams, of its requests, and of the answers that it owes. dropped says that the message is of a stream that the
// agent has cancelled. Heard returns false where there is nothing to tell the agent: a cancel of a stream that had come
// to its end, the word that nobody waits for an answer which the agent has given, a receipt for another session. Where
// nobody waits any more for an answer that the agent is streaming, the message becomes the cancel of that stream.
// Heard does not block.
func (s *Sender) Heard(m *agora.Message, dropped bool) (news bool) {
	peer := agora.ToAgent(s.cfg.Claim.Tenant, m.From)
	switch {
	case m.Kind == agora.Gap:
		s.missed()
	case m.Kind == agora.Receipt:
		return s.receipted(peer, m)
	case m.Kind == agora.Request && m.Meta.Call != "":
		s.called(peer, m)
	case m.Kind == agora.Request && m.Part == agora.Abort:
		s.Cut(m.Session, m.Stream) // the one who waited for its answer says so, under the name of the answer's box
	case m.Kind == agora.Control && m.Part == agora.Abort && m.Meta.Call != "":
		return s.callOver(peer, m)
	case m.Kind == agora.Control && m.Part == agora.Cancel:
		return s.cancelled(s.boxOf(peer, m.Stream), m.Stream) || m.AbortBody().Code == agora.MessageTooLarge
	case m.Kind == agora.Reply && m.Part <= agora.Start:
		s.replied(peer, m.Meta.Parent)
	}
	if m.Part == agora.Cancel && !dropped { // a cancel is for both directions of the name
		s.cancelled(s.boxOf(peer, m.Stream), m.Stream)
	}
	return true
}

// Concerns reports whether a message may say something to the sender of the agent that it has come to: most don't, and
// need not be heard.
func Concerns(m *agora.Message) bool {
	return m.Kind >= agora.Reply || m.Part == agora.Cancel || m.Part == agora.Abort || m.Meta.Call != ""
}

// receipted reports whether a receipt says something to this session: it can be read, and is of no number of a session
// that is over. Where it says that a request is not given to its receiver, no answer to that is waited for any more.
func (s *Sender) receipted(from agora.Address, receipt *agora.Message) bool {
	r, err := receipt.ReceiptBody()
	if err != nil || r.Session != "" && r.Session != s.cfg.Claim.Session {
		return false
	}
	if r.Tier == agora.Undelivered {
		s.undelivered(from, r.ID)
	}
	return true
}
