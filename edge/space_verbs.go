package edge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// subscription is a session's in a space, and how far the agent has got there.
type subscription struct {
	*spaces.Place
	queued bool // stands in the session's ready list

	acked     uint64 // known to have arrived
	written   uint64 // written to the socket
	handed    uint64 // given to the door to write
	resumed   bool   // an earlier socket may have been given events up to the log's end
	pinged    uint64 // what the pong of the ping under way confirms
	persisted uint64 // what presence was last told
}

// Join makes the agent a member of a space, or answers again where it is one:
// then with HasLast or History the events from there are replayed. answer is called before it returns, unless it fails, and is to
// queue the answer: the deliveries that follow from it are pulled behind.
func (s *Session) Join(ctx context.Context, space string, w spaces.Where, answer func(spaces.Joined)) error {
	s.order.Lock()
	defer s.order.Unlock()
	j, err := s.join(ctx, space, w)
	if err == nil {
		answer(j)
	}
	return err
}

func (s *Session) join(ctx context.Context, space string, w spaces.Where) (spaces.Joined, error) {
	if err := s.usable(); err != nil {
		return spaces.Joined{}, err
	}
	if err := errors.Join(s.actor.mayEnter(policy.Join, space), s.actor.quota.Spend(0)); err != nil {
		return spaces.Joined{}, agora.AsError(err)
	}
	w.NoCreate = s.actor.refusesSpace(policy.Create, space) != ""
	s.mu.Lock()
	old, in := s.subscriptions[space], len(s.subscriptions)
	s.mu.Unlock()
	if most := s.node.limits.Load().Spaces; old == nil && in >= most {
		return spaces.Joined{}, agora.Errorf(agora.RateLimited, "an agent may be in at most %d spaces", most)
	}
	ctx, done := s.patient(ctx)
	defer done()
	if old != nil && !w.HasLast && w.History == 0 {
		return s.rejoin(ctx, old)
	}
	w.Marked = w.HasLast || old != nil // who names a position has been here before
	p := &subscription{resumed: w.HasLast}
	opened, joined, err := s.node.hub.Join(ctx, s.claim, space, w, func() { s.subscriptionReady(p) })
	if err != nil {
		return spaces.Joined{}, agora.AsError(err)
	}
	s.subscribe(p, opened, joined.Seq)
	return s.seen(joined), nil
}

// patient returns a context in which a verb may wait for the log, longer than an election takes. The socket is not read meanwhile, which is no fault of its agent.
func (s *Session) patient(ctx context.Context) (waiting context.Context, done func()) {
	s.blocked.begin()
	ctx, cancel := context.WithTimeout(ctx, s.node.cfg.Broker.Election())
	return ctx, func() {
		cancel()
		s.blocked.end()
	}
}

// rejoin answers a member that joins again: its subscription and position stay.
func (s *Session) rejoin(ctx context.Context, p *subscription) (spaces.Joined, error) {
	members, err := s.node.cfg.Presence.Spaces.Members(ctx, s.claim.Tenant, p.Space())
	if err != nil {
		return spaces.Joined{}, agora.AsError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen(spaces.Joined{Members: members, Seq: p.handed}), nil
}

// seen is the answer to a join as the agent may see it: without the right to see the directory, no other member.
func (s *Session) seen(j spaces.Joined) spaces.Joined {
	if s.actor.grant().RefusesWhole(policy.Directory) != "" {
		j.Members = []agora.AgentID{s.claim.Agent}
	}
	return j
}

// subscribe puts a subscription at a position into the session, instead of an older one
// of the same space. What woke it before goes for now.
func (s *Session) subscribe(p *subscription, opened *spaces.Place, at uint64) {
	s.mu.Lock()
	p.Place = opened
	p.acked, p.written, p.handed = at, at, at
	old := s.subscriptions[p.Space()]
	put(&s.subscriptions, p.Space(), p)
	s.mu.Unlock()
	if old != nil {
		old.Close()
	}
	s.markMoved()
	s.subscriptionReady(p)
}

// openSubscriptions opens the spaces that the session is in already.
func (s *Session) openSubscriptions(h Hello, rec presence.Record) {
	for name, cursor := range rec.Spaces {
		if s.actor.mayEnter(policy.Join, name) != nil { // not any more
			s.node.background(func() { s.leave(s.node.ctx, name) })
			continue
		}
		w := spaces.Where{Resume: true, After: cursor, Since: s.card.since(), Marked: true}
		if last, ok := h.Spaces[name]; ok {
			w.After, w.Marked = last, false
		}
		if w.After == 0 {
			w.Since = rec.Card.RegisteredAt
		}
		p := &subscription{resumed: true}
		s.subscribe(p, s.node.hub.Open(s.claim.Tenant, name, s.claim.Agent, w, func() { s.subscriptionReady(p) }), w.After)
	}
}

// subscriptionReady notes that a subscription may have events.
func (s *Session) subscriptionReady(p *subscription) {
	s.mu.Lock()
	if p.queued || p.Place == nil {
		s.mu.Unlock()
		return
	}
	p.queued = true
	s.ready = append(s.ready, p)
	s.mu.Unlock()
	s.conn.Wake()
}

// pullEvents appends what the subscriptions have to what was pulled, and returns how much it took.
func (s *Session) pullEvents(ctx context.Context, max int, reads func()) (taken int, err error) {
	blind := s.actor.grant().RefusesWhole(policy.Directory) != ""
	for max > 0 {
		s.mu.Lock()
		if len(s.ready) == 0 {
			s.mu.Unlock()
			return taken, err
		}
		p := s.ready[0]
		s.ready = s.ready[1:]
		p.queued = false
		current := s.subscriptions[p.Space()] == p
		s.mu.Unlock()
		if !current {
			continue
		}
		events, more := p.Take(max)
		var nextErr error
		if more {
			reads()
			events, nextErr = p.Next(ctx, max)
		}
		s.pulled = slices.Grow(s.pulled, len(events))
		for _, e := range events {
			if s.stamp == 0 {
				s.stamp = e.Stamp
			}
			max -= len(e.Body) + deliveryOverhead
			taken++
			if !s.suppressed(e.To, &e.Message) && !(blind && e.Kind == agora.Roster) {
				s.pulled = append(s.pulled, Delivery{Event: e, sub: p})
			}
		}
		if nextErr != nil {
			s.subscriptionReady(p)
			return taken, nextErr
		}
		if len(events) > 0 {
			s.subscriptionReady(p) // until it has none
		}
	}
	return taken, nil
}

// Leave ends the agent's membership. It is no error for a non-member of a space that exists. answer is called before it returns,
// unless it fails: no event of the space is pulled from then on.
func (s *Session) Leave(ctx context.Context, space string, answer func()) error {
	s.order.Lock()
	defer s.order.Unlock()
	err := s.mayLeave(ctx, space)
	if err == nil {
		answer()
	}
	return err
}

func (s *Session) mayLeave(ctx context.Context, space string) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.maySpeakOf(space); err != nil {
		return err
	}
	ctx, done := s.patient(ctx)
	defer done()
	return s.leave(ctx, space)
}

// leave ends a membership, whoever wants it.
func (s *Session) leave(ctx context.Context, space string) error {
	if err := s.node.hub.Leave(ctx, s.claim, space); err != nil {
		return agora.AsError(err)
	}
	s.mu.Lock()
	p := s.subscriptions[space]
	delete(s.subscriptions, space)
	s.mu.Unlock()
	if p != nil {
		p.Close()
	}
	return nil
}

// mayPublish tells whether the agent may publish into a space: members do, and
// into system spaces only who has that right. goesOn: an event that it has begun,
// which was looked at then, and by review since.
func (s *Session) mayPublish(ctx context.Context, space string, goesOn bool) error {
	if err := s.usable(); err != nil {
		return err
	}
	g := s.review().by
	if !goesOn {
		if err := s.actor.mayEnter(policy.Publish, space); err != nil {
			return err
		}
	}
	typ, err := spaces.Type(space)
	if err != nil {
		return err
	}
	s.mu.Lock()
	member := s.subscriptions[space] != nil
	s.mu.Unlock()
	if !member {
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
	return s.inOrder(ctx, agora.ToSpace(s.claim.Tenant, space), n, "", agora.Whole, func() error { return s.publish(ctx, space, key, n, parts, w) })
}

func (s *Session) publish(ctx context.Context, space, key string, n uint64, parts []json.RawMessage, w Want) error {
	if err := s.mayPublish(ctx, space, false); err != nil {
		return err
	}
	m := agora.Message{Kind: agora.Event, From: s.claim.Agent, To: agora.ToSpace(s.claim.Tenant, space), ID: key, N: n, Body: parts[0], Meta: agora.Meta{Trace: w.Trace}}
	if err := s.spend(ctx, &m); err != nil {
		return err
	}
	if len(parts) == 1 {
		return s.put(ctx, m, w)
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
	to := agora.ToSpace(s.claim.Tenant, space)
	return s.inOrder(ctx, to, n, "", agora.Start, func() error {
		err := s.publishStart(ctx, space, key, n, data, w)
		if err != nil && w.RequestID != "" { // by which its parts name it
			s.sender().Unstarted(to, w.RequestID, n, err)
		}
		return err
	})
}

func (s *Session) publishStart(ctx context.Context, space, key string, n uint64, data json.RawMessage, w Want) error {
	if err := s.mayPublish(ctx, space, false); err != nil {
		return err
	}
	id := s.eventID(space, key, n)
	m := agora.Message{Kind: agora.Event, Part: agora.Start, Stream: id, From: s.claim.Agent, To: agora.ToSpace(s.claim.Tenant, space), ID: key, N: n, Body: data, Meta: agora.Meta{Trace: w.Trace}}
	if err := s.spend(ctx, &m); err != nil {
		return err
	}
	s.alias(w.RequestID, id)
	if err := s.put(ctx, m, w); err != nil {
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
	event = s.unalias(event)
	return s.inOrder(ctx, agora.ToSpace(s.claim.Tenant, space), n, event, part, func() error { return s.publishPart(ctx, space, event, part, n, data, w) })
}

func (s *Session) publishPart(ctx context.Context, space, event string, part agora.Part, n uint64, data json.RawMessage, w Want) error {
	if err := s.mayPublish(ctx, space, true); err != nil {
		to := agora.ToSpace(s.claim.Tenant, space)
		if s.sender().AnsweredFor(to, event, part, n) {
			return nil
		}
		if part == agora.Chunk {
			s.sender().Unstarted(to, event, n, err)
		}
		return err
	}
	m := agora.Message{Kind: agora.Event, Part: part, Stream: event, From: s.claim.Agent, To: agora.ToSpace(s.claim.Tenant, space), N: n, Body: data}
	if w.Told != nil { // an act, which may be asked for again
		m.ID = Key(w.RequestID, []byte{byte(part)}, []byte(event), data)
	}
	if err := s.spend(ctx, &m); err != nil {
		return err
	}
	return s.put(ctx, m, w)
}

// alias lets the id of the frame that began an event stand for the event's
// until the client knows that.
func (s *Session) alias(frame, event string) {
	if frame == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.aliases) >= maxAliases {
		clear(s.aliases) // by now the answers have long come
	}
	put(&s.aliases, frame, event)
}

const maxAliases = 1024

func (s *Session) unalias(event string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.aliases[event]; ok {
		return id
	}
	return event
}

// eventID makes the id of an event. Made of the session and of what was said,
// it is the same when the client says it again at another edge.
func (s *Session) eventID(space, key string, n uint64) string {
	if key == "" && n == 0 {
		return "evt_" + rand.Text()
	}
	sum := sha256.Sum256([]byte(s.claim.Session + "\x00" + space + "\x00" + strconv.FormatUint(n, 10) + "\x00" + key))
	return "evt_" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}

// CancelEvent stops an event: for all when the agent published it, for this
// agent alone when another did. space may be empty.
func (s *Session) CancelEvent(ctx context.Context, space, event string, w Want) error {
	if err := s.usable(); err != nil {
		return err
	}
	event = s.unalias(event)
	to, own, found := s.findEvent(space, event)
	if space != "" && !found {
		if err := s.maySpeakOf(space); err != nil {
			return err
		}
		if err := s.node.hub.Exists(ctx, s.claim.Tenant, space); err != nil {
			return err
		}
	}
	switch {
	case own:
		return s.put(ctx, agora.Message{Kind: agora.Event, Part: agora.Cancel, Stream: event, From: s.claim.Agent, To: to}, w)
	case !found:
		return agora.Errorf(agora.StreamNotFound, "no event %q is under way", event)
	}
	k := streamKey{to, event}
	s.mu.Lock()
	upTo := s.subscriptions[to.Space].handed
	s.mu.Unlock()
	st := presence.Stream{Peer: agora.AgentID(spaceMark + to.Space), Stream: event, Seq: upTo}
	if err := s.node.cfg.Presence.Lanes.Cancel(ctx, s.claim, st); err != nil {
		return agora.AsError(err)
	}
	s.suppress(k, upTo)
	return nil
}

// maySpeakOf tells whether the agent may be told whether there is a space.
func (s *Session) maySpeakOf(space string) error {
	s.mu.Lock()
	member := s.subscriptions[space] != nil
	s.mu.Unlock()
	if member {
		return nil
	}
	return s.actor.mayEnter(policy.Join, space)
}

// findEvent finds an event that is under way, in one space or in any.
func (s *Session) findEvent(space, event string) (to agora.Address, own, found bool) {
	s.mu.Lock()
	var in []agora.Address
	for name := range s.subscriptions {
		if space == "" || name == space {
			in = append(in, agora.ToSpace(s.claim.Tenant, name))
		}
	}
	for _, a := range in {
		if _, ok := s.incoming[streamKey{a, event}]; ok {
			to, found = a, true
		}
	}
	s.mu.Unlock()
	for _, a := range in {
		if _, ok := s.sender().Sends(a, event); ok {
			return a, true, true
		}
	}
	return to, false, found
}
