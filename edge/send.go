package edge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/presence"
)

// A message of a session is sent here, whatever its verb and its door: Do, say, dispatch, admit and put, in this order.
// The lanes that it goes into are those of package relay.

// Do does a command of the session's agent. What one goroutine has it do is stored in its order. An error is the answer
// to the frame; what comes later comes as a notice. It blocks while too much is under way, or the rate of chunks is
// spent; Join, Leave, and a position of a space in Ack may take round trips.
//
// The message of Send has Kind, Part, Stream, Index, N, To.Agent, Body and Meta, and as ID the client's own id. A
// stream that was refused is answered once: for its later parts Do returns nil. An event that is published again with
// the same ID, or number, and data is the same event; the id of one that is opened is told by a notice once it is
// stored. CancelEvent stops an event for all where the agent has published it, else for this agent alone. Join answers
// a member again, and with HasLast or History replays events from there. Leave is no error for a non-member of a space
// that exists. Ack says that everything up to a position has arrived: INVALID_REQUEST for one that was never delivered,
// UNAVAILABLE where that can't be told now.
func (s *Session) Do(ctx context.Context, c *Command) error {
	switch c.Verb {
	case Send:
		return s.say(ctx, c, &c.Message)
	case Answer:
		return s.answer(ctx, c)
	case Publish, OpenEvent, ContinueEvent:
		return s.publish(ctx, c)
	case CancelEvent:
		return s.cancelEvent(ctx, c)
	case Join:
		return s.doJoin(ctx, c)
	case Leave:
		return s.doLeave(ctx, c)
	case Ack:
		return s.ack(ctx, c.Space, c.Seq)
	case verbAlive, verbUpdate:
		return s.doDialled(ctx, c)
	}
	return errUnknownVerb
}

// say stores a message in the order of its sender's frames. What stands in its way is the answer to the frame.
func (s *Session) say(ctx context.Context, c *Command, m *agora.Message) error {
	m.From, m.To.Tenant = s.claim.Agent, s.claim.Tenant
	err := s.out.sender().InTurn(m)
	if err == nil {
		err = s.dispatch(ctx, c, m)
	}
	if err != nil {
		return s.out.sender().Refuse(m, err, s.life.leavesHole(ctx, m.N, err), c.Told != nil)
	}
	return nil
}

// dispatch finds where a message goes, admits it, and puts it into its lane, or mails it.
func (s *Session) dispatch(ctx context.Context, c *Command, m *agora.Message) (err error) {
	if err = s.usable(); err != nil {
		return err
	}
	if m.To.IsSpace() {
		return s.dispatchEvent(ctx, c, m)
	}
	if strings.Contains(m.Stream, reserved) || strings.Contains(m.ID, reserved) {
		return errReserved
	}
	m.To, err = s.out.sender().Route(ctx, m)
	if m.Kind == agora.Reply && m.Part == agora.Whole {
		if decides, err := s.out.decide(ctx, m, c); decides {
			return err
		}
	}
	switch {
	case err != nil:
		return err
	case m.Kind == agora.Request && m.Part == agora.Cancel:
		return s.cancel(ctx, c, *m)
	case m.Part == agora.Whole:
		m.Stream = "" // has said what it answers
	}
	if err = s.out.admit(ctx, m, false); err != nil {
		return err
	}
	if c.anywhere && m.Kind == agora.Reply && m.Part == agora.Whole && !m.To.IsBox() {
		return s.out.mail(ctx, c, *m)
	}
	if m.ID != "" {
		m.ID = Key(m.ID, append([]byte{byte(m.Kind), byte(m.Part)}, m.Media...), []byte(m.Stream), m.Body)
	}
	return s.out.put(ctx, *m, c)
}

// admit is what must hold before a message is stored, by whatever verb and door it comes, once the session is usable:
// the right, the depth, the rate, the screens. member says that the agent is in the space that an event is for.
func (o *outgoing) admit(ctx context.Context, m *agora.Message, member bool) (err error) {
	if m.To.IsSpace() {
		err = o.mayPublish(ctx, m, member)
	} else {
		err = o.mayAddress(ctx, m)
	}
	if err != nil {
		return err
	}
	if err = checkDepth(m, o.node.cfg.Depth); err != nil {
		return err
	}
	if err = o.spend(ctx, m); err != nil {
		return err
	}
	return o.node.screens.check(ctx, o.actor, m)
}

// put puts a message that was admitted into its lane, and has what becomes of it told.
func (o *outgoing) put(ctx context.Context, m agora.Message, c *Command) error {
	how := relay.Options{Receipts: c.Receipts | o.wants, Frame: c.ID, Request: c.Request, Answered: c.Told != nil}
	if c.ID != "" && !m.To.IsSpace() {
		how.Receipts |= agora.Stored
	}
	var span *trace.Span
	if m.Part <= agora.Start && m.Kind <= agora.Event {
		span = o.node.cfg.Tracer.Send(&m)
	}
	if c.Told != nil || c.failed != nil || span != nil {
		how.Asker = &asker{o, c.Told, c.failed, span}
	}
	o.blocked.Add(1)
	defer o.blocked.Add(-1)
	err := o.sender().Send(ctx, m, how)
	if err != nil {
		span.End(agora.AsError(err)) // it is nobody's
	}
	return err
}

// Screen looks at what an agent says to another before it is stored: a whole request of JSON, or the beginning of a
// stream of it. It may give a request a name in m.Meta.Request where there is none, and changes nothing else. Its error
// is the answer to who says it.
type Screen func(ctx context.Context, by *Actor, m *agora.Message) error

// screens are those of the node's doors. The zero value is ready to use.
type screens struct{ all atomic.Pointer[[]Screen] }

// add adds one. It is called by one goroutine at a time.
func (s *screens) add(another Screen) {
	var all []Screen
	if old := s.all.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, another)
	s.all.Store(&all)
}

// check returns why a message of an actor may not be said. It has From and To.
func (s *screens) check(ctx context.Context, by *Actor, m *agora.Message) error {
	all := s.all.Load()
	if all == nil || m.Kind != agora.Request || m.Part > agora.Start || m.Media != "" {
		return nil
	}
	shown := *m // which a screen may keep: most messages are shown to none, and need not be allocated
	for _, look := range *all {
		if err := look(ctx, by, &shown); err != nil {
			return err
		}
	}
	m.Meta.Request = shown.Meta.Request
	return nil
}

// checkDepth returns an INVALID_REQUEST error for what is nested so deeply that no frame could bring it to its
// receiver: the frame itself counts as one of so many levels. It holds for what is said by every door, after that has
// put into a message what it has to. Events come from frames alone, which were held against it.
func checkDepth(m *agora.Message, levels int) error {
	if !m.To.IsSpace() && m.Media == "" && rawjson.Deeper(m.Body, levels-1) {
		return agora.Errorf(agora.InvalidRequest, "the payload is nested more than %d deep", levels-1)
	}
	return nil
}

// cancel ends a stream for both ends: an own one by a part of it, a peer's by
// asking its edge. What the peer still sends of it is not shown any more, in
// later sessions either.
func (s *Session) cancel(ctx context.Context, c *Command, m agora.Message) error {
	if err := s.out.beside(ctx); err != nil {
		return err
	}
	if name := s.incoming.find(m.To, m.Stream); name != m.Stream {
		m.Stream = name
		m.To, _ = s.out.sender().Route(ctx, &m) // a cancel is no answer
	}
	peer := m.To.Peer() // where that is a box, the stream is the request of its call, or the answer
	k := streamKey{peer, m.Stream}
	of, incoming := s.incoming.isOpen(k)
	_, _, upTo := s.cursor.mailbox()
	kind, own := s.out.sender().Sends(m.To, m.Stream)
	// After a resume the beginning of a stream may lie before what this edge has seen.
	if !own && !incoming && !s.claim.Resumed {
		return agora.Errorf(agora.StreamNotFound, "no stream %q to or from %q is open", m.Stream, peer.Agent)
	}
	if !own && !incoming { // what this edge knows to be between the two may be ended by either
		if err := s.out.mayAddress(ctx, &m); err != nil {
			return err
		}
	}
	if incoming || !own {
		st := presence.Stream{Peer: peer.Agent, Stream: m.Stream, Seq: upTo}
		if err := s.noteCancel(ctx, st); err != nil {
			return agora.AsError(err)
		}
		s.incoming.cancel(k, upTo)
	}
	m.Kind = agora.Control
	if own {
		m.Kind = kind
	}
	m.ID = Key(m.ID, []byte("cancel"), []byte(m.Stream))
	reopen := func() { s.incoming.reopen(k, of) }
	if incoming {
		c.failed = reopen
	}
	err := s.out.put(ctx, m, c)
	switch {
	case err == nil:
		s.out.sender().Cut(m.To.Space, m.Stream)
	case incoming:
		reopen()
	}
	return err
}

// noteCancel has presence know of a stream that the agent has cancelled. Should presence have lost the claim, it is
// told of that again first.
func (s *Session) noteCancel(ctx context.Context, st presence.Stream) error {
	err := s.node.cfg.Presence.Lanes.Cancel(ctx, s.claim, st)
	if !errors.Is(err, presence.ErrDeposed) || !guard.Looks {
		return err
	}
	held, failed := s.reassert(ctx)
	switch {
	case failed != nil: // it is not known to be another's
		return failed
	case held:
		return s.node.cfg.Presence.Lanes.Cancel(ctx, s.claim, st)
	}
	return err
}

// Dialects that have no names for streams name each by the request that it answers. What follows is for their doors.

// answer says a part of the agent's answer to a request of m.To, which m.Meta.Parent names. A Chunk opens the answer's
// stream, of that name, where none is open. The Whole answer is the End of the stream that is open, with its body. Said
// again under its ID it is the same part. Where the agent says no part before it knows that the one before is stored,
// m.Indexed says so: then the stream outlives its edge. With a Kind of Request a Chunk or an End continues with a
// stream of the agent's own, which its request has opened under its own name; STREAM_NOT_FOUND where none is open.
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
