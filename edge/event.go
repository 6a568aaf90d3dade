package edge

import (
	"context"
	"errors"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/presence"
)

// publish says an event, or a part of one.
func (s *Session) publish(ctx context.Context, c *Command) error {
	m, err := s.out.event(c)
	if err != nil {
		return err
	}
	if c.Verb == OpenEvent {
		s.out.aliases.add(c.ID, m.Stream) // by which its parts name it
	}
	return s.say(ctx, c, &m)
}

// cancelEvent stops an event: for all when the agent published it, for this
// agent alone when another did.
func (s *Session) cancelEvent(ctx context.Context, c *Command) error {
	if err := errors.Join(s.usable(), s.out.beside(ctx)); err != nil {
		return agora.AsError(err)
	}
	event := s.out.aliases.of(c.Event)
	to, own, found := s.findEvent(c.Space, event)
	if c.Space != "" && !found {
		if err := s.maySpeakOf(c.Space); err != nil {
			return err
		}
		if err := s.node.hub.Exists(ctx, s.claim.Tenant, c.Space); err != nil {
			return err
		}
	}
	switch {
	case own:
		m := agora.Message{Kind: agora.Event, Part: agora.Cancel, Stream: event, From: s.claim.Agent, To: to}
		return s.out.put(ctx, m, c)
	case !found:
		return agora.Errorf(agora.StreamNotFound, "no event %q is under way", event)
	}
	_, upTo := s.cursor.subscription(to.Space)
	st := presence.Stream{Peer: agora.AgentID(spaceMark + to.Space), Stream: event, Seq: upTo}
	if err := s.node.cfg.Presence.Lanes.Cancel(ctx, s.claim, st); err != nil {
		return agora.AsError(err)
	}
	s.incoming.cancel(streamKey{to, event}, upTo)
	return nil
}

// findEvent finds an event that is under way, in one space or in any.
func (s *Session) findEvent(space, event string) (to agora.Address, own, found bool) {
	var in []agora.Address
	for _, name := range s.cursor.spaces() {
		if space == "" || name == space {
			in = append(in, agora.ToSpace(s.claim.Tenant, name))
		}
	}
	for _, a := range in {
		if _, ok := s.incoming.isOpen(streamKey{a, event}); ok {
			to, found = a, true
		}
	}
	for _, a := range in {
		if _, ok := s.out.sender().Sends(a, event); ok {
			return a, true, true
		}
	}
	return to, false, found
}

// putCut sends an event that was cut: its parts go as a stream, and are one frame to its sender. The last part has the
// frame's number and receipt, as all of the event is stored when that is, and its outcome is the one answer to the
// frame.
func (o *outgoing) putCut(ctx context.Context, m agora.Message, c *Command) error {
	o.blocked.begin()
	defer o.blocked.end()
	key, n, want := m.ID, m.N, c.Receipts|o.wants
	m.Meta.Receipts = want &^ agora.Stored
	span := o.node.cfg.Tracer.Send(&m)
	var first *agora.Error // that a part met; outcomes come in the order of the parts, one at a time
	note := relay.AskerFunc(func(t relay.Sent) {
		switch {
		case t.Err == nil:
			o.node.stats.sent.Add(1)
		case first == nil:
			first = agora.AsError(t.Err)
		}
	})
	for i, part := range c.pieces {
		m.Part, m.Body, m.Indexed, m.Index, m.ID, m.N = agora.Chunk, part, true, uint32(i), partKey(key, i), 0
		if i == 0 {
			m.Part = agora.Start
		}
		err := o.sender().Send(ctx, m, relay.Options{Receipts: want, Piece: true, Asker: note})
		if err != nil {
			span.End(agora.AsError(err))
			return o.cutShort(m, n, i, err)
		}
		m.Meta.Trace = ""
	}
	m.Part, m.Body, m.Index, m.ID, m.N = agora.End, nil, uint32(len(c.pieces)), partKey(key, len(c.pieces)), n
	last := asker{o, c.Told, c.failed, span}
	how := relay.Options{Receipts: want, Frame: c.ID, Piece: true, Asker: relay.AskerFunc(func(t relay.Sent) {
		if t.Err != nil && agora.AsError(t.Err).Code == agora.StreamNotFound && first != nil {
			t.Err = first // it never began
		}
		last.Told(t)
	})}
	err := o.sender().Send(ctx, m, how)
	if err != nil {
		span.End(agora.AsError(err)) // it is nobody's
		return o.cutShort(m, n, len(c.pieces), err)
	}
	return nil
}

// cutShort returns why part i of an event was refused, and ends the event for the members where it will not be said
// again.
func (o *outgoing) cutShort(m agora.Message, n uint64, i int, err error) error {
	again := n > 0 && agora.AsError(err).Passes() || errors.Is(err, presence.ErrDeposed)
	if i > 0 && !again {
		o.sender().Broken(m.To, m.Stream, n, err)
	}
	return err
}

// partKey is the idempotency key of part i of an event.
func partKey(key string, i int) string {
	if key == "" {
		return ""
	}
	return key + "/" + strconv.Itoa(i)
}
