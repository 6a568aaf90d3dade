package edge

import (
	"context"
	"errors"
	"slices"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// doJoin makes the agent a member of a space, or answers again where it is one.
func (s *Session) doJoin(ctx context.Context, c *Command) error {
	s.order.Lock()
	defer s.order.Unlock()
	j, err := s.join(ctx, c.Space, c.Where)
	if err == nil {
		c.done(Outcome{Joined: j})
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
	old, _ := s.cursor.subscription(space)
	if old == nil { // until it counts by itself
		if err := s.node.limits.usage.Take(admission.Spaces, s.owner(), 1); err != nil {
			return spaces.Joined{}, err
		}
		defer s.node.limits.usage.Give(admission.Spaces, s.owner(), 1)
	}
	ctx, done := s.out.patient(ctx)
	defer done()
	if old != nil && !w.HasLast && w.History == 0 {
		if j, is, err := s.rejoin(ctx, old); is || err != nil {
			return j, err
		}
	}
	w.Marked = w.HasLast || old != nil // who names a position has been here before
	p := &subscription{resumed: w.HasLast}
	asserted := s.node.owner.Asserted()
	opened, joined, err := s.node.hub.Join(ctx, s.claim, space, w, func() { s.subscriptionReady(p) })
	if err != nil {
		return spaces.Joined{}, agora.AsError(err)
	}
	s.subscribe(p, opened, joined.Seq)
	if s.node.owner.Asserted() != asserted { // presence may have lost the membership, and was told of a session without it
		if err := s.writeAgain(ctx); err != nil {
			return spaces.Joined{}, agora.AsError(err)
		}
	}
	return s.seen(joined), nil
}

// writeAgain has presence know what the session is in.
func (s *Session) writeAgain(ctx context.Context) error {
	held, err := s.reassert(ctx)
	if err == nil && !held {
		return presence.ErrDeposed
	}
	return err
}

// rejoin answers a member that joins again: its subscription and position stay. is is false for one that has left, and
// was told that this may not have been done.
func (s *Session) rejoin(ctx context.Context, p *subscription) (j spaces.Joined, is bool, err error) {
	members, err := s.node.cfg.Presence.Spaces.Members(ctx, s.claim.Tenant, p.Space())
	if err != nil && !errors.Is(err, presence.ErrNoSpace) {
		return spaces.Joined{}, false, agora.AsError(err)
	}
	is = slices.Contains(members, s.claim.Agent)
	return s.seen(spaces.Joined{Members: members, Seq: s.cursor.handedOf(p)}), is, nil
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
	old := s.cursor.subscribe(p, opened, at)
	if old != nil {
		old.Close()
	}
	if p.counted && old == nil {
		s.node.limits.usage.Add(admission.Spaces, s.owner(), 1)
	}
	s.markMoved()
	s.subscriptionReady(p)
}

// openSubscriptions opens the spaces that the session is in already, and tells of those that it has left.
func (s *Session) openSubscriptions(o *opening) {
	rec := &o.rec
	for _, name := range rec.Leaving {
		s.node.background(func() { s.tellLeft(name) })
	}
	for name, cursor := range rec.Spaces {
		if s.actor.mayEnter(policy.Join, name) != nil { // not any more
			s.node.background(func() { s.leave(s.node.ctx, name) })
			continue
		}
		w := spaces.Where{After: cursor, Since: s.profile.now().since(), Marked: true}
		if last, ok := o.hello.Spaces[name]; ok && !o.misplaced[name] {
			w.After, w.Marked = last, false
		}
		w.Lost = o.misplaced[name]
		if w.After == 0 {
			w.Since = rec.Card.RegisteredAt
		}
		p := &subscription{resumed: true}
		s.subscribe(p, s.node.hub.Open(s.claim.Tenant, name, s.claim.Agent, w, func() { s.subscriptionReady(p) }), w.After)
	}
}

// tellLeft leaves a space once more that the session has left, as nobody may have been told; not one that it has joined
// again. Where it fails, whoever ends the session, or continues with it elsewhere, does so.
func (s *Session) tellLeft(space string) {
	s.order.Lock()
	defer s.order.Unlock()
	p, _ := s.cursor.subscription(space)
	if p != nil || s.usable() != nil {
		return
	}
	if err := s.node.hub.Leave(s.node.ctx, s.claim, space); err != nil && agora.AsError(err).Code != agora.SpaceNotFound {
		s.node.cfg.Log.Debug("that a space was left is not told yet", "space", space, "agent", s.claim.Agent, "err", err)
	}
}

// subscriptionReady notes that a subscription may have events.
func (i *inbound) subscriptionReady(p *subscription) {
	if i.cursor.markReady(p) {
		i.conn.Wake()
	}
}

// doLeave ends the agent's membership: no event of the space is pulled behind its answer.
func (s *Session) doLeave(ctx context.Context, c *Command) error {
	s.order.Lock()
	defer s.order.Unlock()
	err := s.out.beside(ctx)
	if err == nil {
		err = s.mayLeave(ctx, c.Space)
	}
	if err == nil {
		c.done(Outcome{})
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
	ctx, done := s.out.patient(ctx)
	defer done()
	return s.leave(ctx, space)
}

// leave ends a membership, whoever wants it.
func (s *Session) leave(ctx context.Context, space string) error {
	if err := s.node.hub.Leave(ctx, s.claim, space); err != nil {
		return agora.AsError(err)
	}
	if p := s.cursor.unsubscribe(space); p != nil {
		p.Close()
		if p.counted {
			s.node.limits.usage.Give(admission.Spaces, s.owner(), 1)
		}
	}
	return nil
}

// maySpeakOf reports whether the agent may be told whether there is a space.
func (s *Session) maySpeakOf(space string) error {
	if p, _ := s.cursor.subscription(space); p != nil {
		return nil
	}
	return s.actor.mayEnter(policy.Join, space)
}
