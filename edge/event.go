package edge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
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

// dispatchEvent admits an event, or a part of one, and puts it into its lane. A whole one that is larger than a delta
// may be goes in parts.
func (s *Session) dispatchEvent(ctx context.Context, c *Command, m *agora.Message) error {
	member, _ := s.cursor.subscription(m.To.Space)
	if err := s.out.admit(ctx, m, member != nil); err != nil {
		return err
	}
	if len(c.pieces) > 1 {
		m.Stream = s.out.eventID(c.Space, m.ID, c.N)
		return s.out.putCut(ctx, *m, c)
	}
	err := s.out.put(ctx, *m, c)
	if err == nil && c.Verb == OpenEvent {
		s.out.tell(c, Notice{Kind: NoticePublished, RequestID: c.ID, To: m.To, Stream: m.Stream})
	}
	return err
}

// mayPublish reports whether the agent may publish into a space: members do, and into system spaces only who has that
// right. What continues with an event was looked at when that began, and by review since.
func (o *outgoing) mayPublish(ctx context.Context, m *agora.Message, member bool) error {
	space, g := m.To.Space, o.review().by
	if m.Part <= agora.Start {
		if err := o.actor.mayEnter(policy.Publish, space); err != nil {
			return err
		}
	}
	typ, err := spaces.Type(space)
	if err != nil {
		return err
	}
	if !member {
		if err := o.node.hub.Exists(ctx, o.claim.Tenant, space); err != nil {
			return err
		}
		return agora.Errorf(agora.Forbidden, "only members publish into space %q", space)
	}
	if typ == spaces.System && !g.Ruled() && !o.actor.Principal().System {
		return agora.Errorf(agora.Forbidden, "space %q is the system's", space)
	}
	return nil
}

// event makes the message of an event, or of a part of one, as members are to get it.
func (o *outgoing) event(c *Command) (m agora.Message, err error) {
	to := agora.ToSpace(o.claim.Tenant, c.Space)
	m = agora.Message{Kind: agora.Event, Part: c.Part, From: o.claim.Agent, To: to, N: c.N, Body: c.Data}
	switch {
	case c.Verb == Publish:
		m.ID, m.Meta.Trace, m.Part = EventKey(c.ID, c.N, c.Data), c.Trace, agora.Whole
		if c.pieces, err = o.node.hub.Publication(c.Data, o.claim.Agent); err == nil {
			m.Body = c.pieces[0]
		}
		return m, err
	case c.Verb == OpenEvent:
		m.ID, m.Meta.Trace, m.Part = EventKey(c.ID, c.N, c.Data), c.Trace, agora.Start
		m.Stream = o.eventID(c.Space, m.ID, c.N)
		m.Body, err = o.node.hub.Opening(c.Data, o.claim.Agent)
		return m, err
	case c.Part == agora.Chunk:
		m.Body, err = o.node.hub.Delta(c.Data, o.claim.Agent)
	}
	m.Stream = o.aliases.of(c.Event)
	if c.Told != nil { // it may be asked for again
		m.ID = Key(c.ID, []byte{byte(m.Part)}, []byte(m.Stream), m.Body)
	}
	return m, err
}

// eventID makes the id of an event. Made of the session and of what was said,
// it is the same when the client says it again at another edge.
func (o *outgoing) eventID(space, key string, n uint64) string {
	if key == "" && n == 0 {
		return "evt_" + rand.Text()
	}
	sum := sha256.Sum256([]byte(o.claim.Session + "\x00" + space + "\x00" + strconv.FormatUint(n, 10) + "\x00" + key))
	return "evt_" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
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
	o.blocked.Add(1)
	defer o.blocked.Add(-1)
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

// aliases are event ids by the ids of the frames that began them: a table that is made with the first one. The zero
// value is ready to use.
type aliases struct{ table atomic.Pointer[aliasTable] }

type aliasTable struct {
	mu     sync.Mutex // guards the field below
	events map[string]string
}

const maxAliases = 1024

// add lets the id of the frame that began an event stand for the event's
// until the client knows that.
func (a *aliases) add(frame, event string) {
	if frame == "" {
		return
	}
	if a.table.Load() == nil {
		a.table.CompareAndSwap(nil, &aliasTable{events: map[string]string{}})
	}
	t := a.table.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) >= maxAliases {
		clear(t.events) // by now the answers have long come
	}
	t.events[frame] = event
}

// of returns the event that a client names.
func (a *aliases) of(event string) string {
	t := a.table.Load()
	if t == nil {
		return event
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok := t.events[event]; ok {
		return id
	}
	return event
}
