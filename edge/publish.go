package edge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// publisher says what an agent has to say in its spaces.
type publisher struct{ *Session }

// mayPublish reports whether the agent may publish into a space: members do, and
// into system spaces only who has that right. goesOn: an event that it has begun,
// which was looked at then, and by review since.
func (s publisher) mayPublish(ctx context.Context, space string, goesOn bool) error {
	if err := s.usable(); err != nil {
		return err
	}
	g := authorizer(s).review().by
	if !goesOn {
		if err := s.actor.mayEnter(policy.Publish, space); err != nil {
			return err
		}
	}
	typ, err := spaces.Type(space)
	if err != nil {
		return err
	}
	if p, _ := s.cursor.subscription(space); p == nil {
		if err := s.node.hub.Exists(ctx, s.claim.Tenant, space); err != nil {
			return err
		}
		return agora.Errorf(agora.Forbidden, "only members publish into space %q", space)
	}
	if typ == spaces.System && !g.Ruled() && !s.actor.Principal().System {
		return agora.Errorf(agora.Forbidden, "space %q is the system's", space)
	}
	return nil
}

// Publish puts an event into a space. n is the number of the frame, 0 where the client does not number. Published again with the same
// id, or number, and data it is the same event.
func (s *Session) Publish(ctx context.Context, space string, n uint64, data json.RawMessage, w Want) error {
	parts, err := s.node.hub.Publication(data, s.claim.Agent)
	if err != nil {
		return err
	}
	key := EventKey(w.RequestID, n, data)
	return ordered{s}.do(ctx, agora.ToSpace(s.claim.Tenant, space), n, "", agora.Whole, func() error { return publisher{s}.publish(ctx, space, key, n, parts, w) })
}

func (s publisher) publish(ctx context.Context, space, key string, n uint64, parts []json.RawMessage, w Want) error {
	if err := s.mayPublish(ctx, space, false); err != nil {
		return err
	}
	m := agora.Message{Kind: agora.Event, From: s.claim.Agent, To: agora.ToSpace(s.claim.Tenant, space), ID: key, N: n, Body: parts[0], Meta: agora.Meta{Trace: w.Trace}}
	if err := s.out.spend(ctx, &m); err != nil {
		return err
	}
	if len(parts) == 1 {
		return s.out.put(ctx, m, w)
	}
	m.Stream = s.eventID(space, key, n)
	return s.putCut(ctx, m, parts, w)
}

// PublishStart opens an event that is streamed. Its id is told by a notice
// once it is stored.
func (s *Session) PublishStart(ctx context.Context, space string, n uint64, data json.RawMessage, w Want) error {
	key := EventKey(w.RequestID, n, data)
	data, err := s.node.hub.Opening(data, s.claim.Agent)
	if err != nil {
		return err
	}
	to, id := agora.ToSpace(s.claim.Tenant, space), publisher{s}.eventID(space, key, n)
	return ordered{s}.do(ctx, to, n, id, agora.Start, func() error {
		err := publisher{s}.publishStart(ctx, to, id, key, n, data, w)
		if err != nil && w.RequestID != "" { // by which its parts name it
			s.out.sender().Unstarted(to, w.RequestID, n, err)
		}
		return err
	})
}

func (s publisher) publishStart(ctx context.Context, to agora.Address, id, key string, n uint64, data json.RawMessage, w Want) error {
	if err := s.mayPublish(ctx, to.Space, false); err != nil {
		return err
	}
	m := agora.Message{Kind: agora.Event, Part: agora.Start, Stream: id, From: s.claim.Agent, To: to, ID: key, N: n, Body: data, Meta: agora.Meta{Trace: w.Trace}}
	if err := s.out.spend(ctx, &m); err != nil {
		return err
	}
	s.aliases.add(w.RequestID, id)
	if err := s.out.put(ctx, m, w); err != nil {
		return err
	}
	opened := Notice{Kind: NoticePublished, RequestID: w.RequestID, To: m.To, Stream: id}
	if w.Told != nil {
		w.Told(opened)
	} else {
		s.conn.Notify(opened)
	}
	return nil
}

// PublishPart goes on with a streamed event: event is its id, or the id of the
// frame that began it.
func (s *Session) PublishPart(ctx context.Context, space, event string, part agora.Part, n uint64, data json.RawMessage, w Want) error {
	if part == agora.Chunk {
		var err error
		if data, err = s.node.hub.Delta(data, s.claim.Agent); err != nil {
			return err
		}
	}
	event = s.aliases.of(event)
	return ordered{s}.do(ctx, agora.ToSpace(s.claim.Tenant, space), n, event, part, func() error { return publisher{s}.publishPart(ctx, space, event, part, n, data, w) })
}

func (s publisher) publishPart(ctx context.Context, space, event string, part agora.Part, n uint64, data json.RawMessage, w Want) error {
	if err := s.mayPublish(ctx, space, true); err != nil {
		to := agora.ToSpace(s.claim.Tenant, space)
		if s.out.sender().AnsweredFor(to, event, part, n) {
			return nil
		}
		if part == agora.Chunk {
			s.out.sender().Unstarted(to, event, n, err)
		}
		return err
	}
	m := agora.Message{Kind: agora.Event, Part: part, Stream: event, From: s.claim.Agent, To: agora.ToSpace(s.claim.Tenant, space), N: n, Body: data}
	if w.Told != nil { // an act, which may be asked for again
		m.ID = Key(w.RequestID, []byte{byte(part)}, []byte(event), data)
	}
	if err := s.out.spend(ctx, &m); err != nil {
		return err
	}
	return s.out.put(ctx, m, w)
}

// eventID makes the id of an event. Made of the session and of what was said,
// it is the same when the client says it again at another edge.
func (s publisher) eventID(space, key string, n uint64) string {
	if key == "" && n == 0 {
		return "evt_" + rand.Text()
	}
	sum := sha256.Sum256([]byte(s.claim.Session + "\x00" + space + "\x00" + strconv.FormatUint(n, 10) + "\x00" + key))
	return "evt_" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}

// CancelEvent stops an event: for all when the agent published it, for this
// agent alone when another did. space may be empty.
func (s *Session) CancelEvent(ctx context.Context, space, event string, w Want) error {
	if err := errors.Join(s.usable(), s.out.beside(ctx)); err != nil {
		return agora.AsError(err)
	}
	event = s.aliases.of(event)
	to, own, found := publisher{s}.findEvent(space, event)
	if space != "" && !found {
		if err := (member{s}).maySpeakOf(space); err != nil {
			return err
		}
		if err := s.node.hub.Exists(ctx, s.claim.Tenant, space); err != nil {
			return err
		}
	}
	switch {
	case own:
		return s.out.put(ctx, agora.Message{Kind: agora.Event, Part: agora.Cancel, Stream: event, From: s.claim.Agent, To: to}, w)
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
func (s publisher) findEvent(space, event string) (to agora.Address, own, found bool) {
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
