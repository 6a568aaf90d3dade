package edge

import (
	"context"
	"errors"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

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

// dispatch finds where a message goes, admits it, and puts it into its lane.
func (s *Session) dispatch(ctx context.Context, c *Command, m *agora.Message) (err error) {
	if err = s.usable(); err != nil {
		return err
	}
	if m.To.IsSpace() {
		member, _ := s.cursor.subscription(m.To.Space)
		return s.out.dispatchEvent(ctx, c, m, member != nil)
	}
	if strings.Contains(m.Stream, reserved) || strings.Contains(m.ID, reserved) {
		return errReserved
	}
	m.To, err = s.out.sender().Route(ctx, m)
	if decides, err := s.out.decide(ctx, m, c); decides {
		return err
	}
	switch {
	case err != nil:
		return err
	case m.Kind == agora.Request && m.Part == agora.Cancel:
		return s.cancel(ctx, c, *m)
	}
	return s.out.dispatchMessage(ctx, c, m)
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

// noteCancel has presence know of a stream that the agent has cancelled. Should presence have lost the claim, it is told
// of that again first.
func (s *Session) noteCancel(ctx context.Context, st presence.Stream) error {
	err := s.node.cfg.Presence.Lanes.Cancel(ctx, s.claim, st)
	if !errors.Is(err, presence.ErrDeposed) || !guard.Looks {
		return err
	}
	held, failed := leaver{s}.reassert(ctx)
	switch {
	case failed != nil: // it is not known to be another's
		return failed
	case held:
		return s.node.cfg.Presence.Lanes.Cancel(ctx, s.claim, st)
	}
	return err
}
