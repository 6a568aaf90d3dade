package edge

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
)

// Dialects that have no names for streams name each by the request that it answers. What follows is for their doors.

// answer says a part of the agent's answer to a request of m.To, which m.Meta.Parent names. A Chunk opens the answer's
// stream, of that name, where none is open. The Whole answer is the End of the stream that is open, with its body. Said
// again under its ID it is the same part. Where the agent says no part before it knows that the one before is stored,
// m.Indexed says so: then the stream outlives its edge. With a Kind of Request a Chunk or an End goes on with a stream
// of the agent's own, which its request has opened under its own name; STREAM_NOT_FOUND where none is open.
func (s *Session) answer(ctx context.Context, c *Command) error {
	m := &c.Message
	m.To = s.peer(m.To.Agent)
	switch s.out.sender().Continue(m, c.Told != nil) {
	case relay.Known:
		s.out.toldStored(m.To, c)
		return nil
	case relay.Dropped:
		return nil
	case relay.NotOpen:
		return agora.Errorf(agora.StreamNotFound, "stream %q to %q is not open", m.Meta.Parent, m.To.Agent)
	case relay.Opens:
		if err := s.openAnswer(ctx, *m); err != nil {
			s.out.sender().Unopened(m)
			return err
		}
	}
	m.Indexed, m.Index = m.Stream != "", agora.NextIndex // what the start was decides whether that proves anything
	return s.say(ctx, c, m)
}

// NameStream says by which request the agent knows a stream of a peer's that was delivered to it. A cancel may name the
// stream so.
func (s *Session) NameStream(peer agora.AgentID, stream, request string) {
	s.incoming.name(streamKey{s.peer(peer), stream}, request)
}

// openAnswer opens the stream of an answer. Its name is its key as well: where two parts of one answer come at one
// time, both open it, once.
func (s *Session) openAnswer(ctx context.Context, m agora.Message) error {
	m.Part, m.Stream, m.ID, m.Body, m.Media, m.Index = agora.Start, m.Meta.Parent, "start", nil, "", 0
	m.Meta.Request = m.Meta.Parent
	return s.say(ctx, &Command{Verb: Send, Told: func(Notice) {}}, &m) // what becomes of the part behind it tells enough
}
