package edge

import (
	"context"

	"github.com/agora-relay/agora"
)

// Dialects that have no names for streams name each by the request that it answers. What follows is for their doors.

// Answer says a part of the agent's answer to a request of m.To, which m.Meta.Parent names. A Chunk opens the answer's stream, of that name, where
// none is open. The Whole answer is the End of the stream that is open, with its body. Said again under its ID it is the same part.
// Where the agent says no part before it knows that the one before is stored, m.Indexed says so: then the stream outlives its edge.
// With a Kind of Request a Chunk or an End goes on with a stream of the agent's own, which its request has opened under its own name; STREAM_NOT_FOUND
// where none is open. What else there is to know is said of [Session.Send].
func (s *Session) Answer(ctx context.Context, m agora.Message, w Want) error {
	peer, name := s.peer(m.To.Agent), m.Meta.Parent
	kind, open := s.out.sender().Sends(peer, name)
	switch {
	case open && (kind == m.Kind || m.Part == agora.Chunk):
		m.Kind, m.Stream = kind, name
		if m.Part == agora.Whole {
			m.Part = agora.End
			w = mailer{s}.concluding(peer, name, m.ID, w)
		}
	case m.Kind == agora.Reply && m.Part == agora.Whole:
		if s.out.sender().Concluded(peer, name, m.ID) {
			s.out.toldStored(peer, w)
			return nil
		}
	case m.Kind == agora.Request:
		return notOpen(&m)
	default:
		ended, silent := s.out.sender().Over(peer, name)
		again, may := false, false
		if silent {
			again, may = s.out.sender().Reopens(peer, name, m.ID, w.Told == nil)
		}
		if silent && w.Told == nil && !again { // it was answered for
			return nil
		}
		if ended || silent && !may {
			return notOpen(&m)
		}
		if err := (mailer{s}).openAnswer(ctx, m); err != nil {
			s.out.sender().Unopened(peer, name, m.ID)
			return err
		}
		m.Stream = name
	}
	m.Indexed, m.Index = m.Stream != "", agora.NextIndex // what the start was decides whether that proves anything
	return s.Send(ctx, m, w)
}

// mails reports whether an answer that came by another edge is whole, and goes to a mailbox.
func (s mailer) mails(ctx context.Context, m *agora.Message) bool {
	peer, name := s.peer(m.To.Agent), m.Meta.Parent
	if m.Kind != agora.Reply || m.Part != agora.Whole || s.out.sender().Concluded(peer, name, m.ID) {
		return false
	}
	if kind, open := s.out.sender().Sends(peer, name); open && kind == m.Kind {
		return false
	}
	sent := *m
	sent.To = peer
	to, err := s.out.sender().Route(ctx, &sent)
	return err == nil && !to.IsBox()
}

// mail stores such an answer like that of an agent without a session: should the session end before that is told, it is the same when it is said again.
func (s mailer) mail(ctx context.Context, m agora.Message, w Want) (Outcome, error) {
	m.To = s.peer(m.To.Agent)
	err := s.usable()
	if err == nil {
		err = authorizer(s).mayAddress(ctx, &m)
	}
	if err == nil {
		err = s.out.spend(ctx, &m)
	}
	if err != nil {
		return Outcome{}, err
	}
	return s.actor.actingAs(s.claim.Agent).store(ctx, m, w)
}

// NameStream says by which request the agent knows a stream of a peer's that was delivered to it. A cancel may name the stream so.
func (s *Session) NameStream(peer agora.AgentID, stream, request string) {
	s.incoming.name(streamKey{s.peer(peer), stream}, request)
}

func notOpen(m *agora.Message) error {
	return agora.Errorf(agora.StreamNotFound, "stream %q to %q is not open", m.Meta.Parent, m.To.Agent)
}

// concluding notes that an answer ends the stream of its name, for as long as that does not fail.
func (s mailer) concluding(peer agora.Address, name, id string, w Want) Want {
	s.out.sender().Concludes(peer, name, id)
	w.failed = func() { s.out.sender().Concludes(peer, name, "") }
	return w
}

// openAnswer opens the stream of an answer. Its name is its key as well: where two parts of one answer come at one time, both open it, once.
func (s mailer) openAnswer(ctx context.Context, m agora.Message) error {
	m.Part, m.Stream, m.ID, m.Body, m.Media, m.Index = agora.Start, m.Meta.Parent, "start", nil, "", 0
	m.Meta.Request = m.Meta.Parent
	return s.Send(ctx, m, Want{Told: func(Notice) {}}) // what becomes of the part behind it tells enough
}

// Answer is [Session.Answer] for an agent that the actor may be, by the edge that holds its session. A whole answer needs none. Errors are those of
// [Actor.Send], and STREAM_NOT_FOUND for a part of an answer that has ended or was cancelled.
func (a *Actor) Answer(ctx context.Context, as agora.AgentID, m agora.Message, w Want) (Outcome, error) {
	w.RequestID, m.Indexed = m.ID, true
	if err := a.actingAs(as).mayTell(&m); err != nil {
		return Outcome{}, err
	}
	return a.actingAs(as).say(ctx, act{Verb: verbAnswer, Message: &m}, w, a.actingAs(as).alone(ctx, m, w))
}
