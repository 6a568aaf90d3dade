package edge

import (
	"context"

	"github.com/agora-relay/agora"
)

// Dialects that have no names for streams name each by the request that it answers. What follows is for their doors.

// answer says a part of the agent's answer to a request of m.To, which m.Meta.Parent names. A Chunk opens the answer's
// stream, of that name, where none is open. The Whole answer is the End of the stream that is open, with its body. Said
// again under its ID it is the same part. Where the agent says no part before it knows that the one before is stored,
// m.Indexed says so: then the stream outlives its edge. With a Kind of Request a Chunk or an End goes on with a stream
// of the agent's own, which its request has opened under its own name; STREAM_NOT_FOUND where none is open.
func (s *Session) answer(ctx context.Context, c *Command) error {
	m := &c.Message
	peer, name := s.peer(m.To.Agent), m.Meta.Parent
	kind, open := s.out.sender().Sends(peer, name)
	switch {
	case open && (kind == m.Kind || m.Part == agora.Chunk):
		m.Kind, m.Stream = kind, name
		if m.Part == agora.Whole {
			m.Part = agora.End
			s.out.sender().Concludes(peer, name, m.ID)
			c.failed = func() { s.out.sender().Concludes(peer, name, "") }
		}
	case m.Kind == agora.Reply && m.Part == agora.Whole:
		if s.out.sender().Concluded(peer, name, m.ID) {
			s.out.toldStored(peer, c)
			return nil
		}
	case m.Kind == agora.Request:
		return notOpen(m)
	default:
		ended, silent := s.out.sender().Over(peer, name)
		again, may := false, false
		if silent {
			again, may = s.out.sender().Reopens(peer, name, m.ID, c.Told == nil)
		}
		if silent && c.Told == nil && !again { // it was answered for
			return nil
		}
		if ended || silent && !may {
			return notOpen(m)
		}
		if err := s.openAnswer(ctx, *m); err != nil {
			s.out.sender().Unopened(peer, name, m.ID)
			return err
		}
		m.Stream = name
	}
	m.Indexed, m.Index = m.Stream != "", agora.NextIndex // what the start was decides whether that proves anything
	return s.say(ctx, c, m)
}

// NameStream says by which request the agent knows a stream of a peer's that was delivered to it. A cancel may name the
// stream so.
func (s *Session) NameStream(peer agora.AgentID, stream, request string) {
	s.incoming.name(streamKey{s.peer(peer), stream}, request)
}

func notOpen(m *agora.Message) error {
	return agora.Errorf(agora.StreamNotFound, "stream %q to %q is not open", m.Meta.Parent, m.To.Agent)
}

// openAnswer opens the stream of an answer. Its name is its key as well: where two parts of one answer come at one
// time, both open it, once.
func (s *Session) openAnswer(ctx context.Context, m agora.Message) error {
	m.Part, m.Stream, m.ID, m.Body, m.Media, m.Index = agora.Start, m.Meta.Parent, "start", nil, "", 0
	m.Meta.Request = m.Meta.Parent
	return s.say(ctx, &Command{Verb: Send, Told: func(Notice) {}}, &m) // what becomes of the part behind it tells enough
}
