package edge

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/pause"
)

// What an Actor says, it says as an agent that it may be. A whole message is stored by the edge itself, under the name
// that the agent has given it. All else is of a session: whichever edge holds that does it, so it stands in the
// session's lanes, and counts against its rates. While a session moves, an Actor waits for its next holder, for as long
// as Config.Patience. Do blocks until what it stores is stored, and may be called from any number of goroutines; each
// of them has its own order.

// actingAs is an Actor as one of the agents that it may be.
type actingAs struct {
	actor *Actor
	as    agora.AgentID
}

func (a *Actor) actingAs(as agora.AgentID) actingAs { return actingAs{a, as} }

// Do does a command of an agent that the actor may be, at the edge that holds the agent's session, and returns when
// that is stored. What it may do is looked at here by the actor's rights, and by the session's holder as by
// [Session.Do]. A whole message of Send or Answer needs no session: it is stored by this edge, and with an ID it is the
// same message when it is said again, whatever has become of the session meanwhile. The ID of a command is that of its
// message where that has one. Errors: FORBIDDEN, those of a frame that is sent, UNAVAILABLE where the session can't be
// reached, INVALID_REQUEST or STREAM_NOT_FOUND for a stream of who has none.
func (a *Actor) Do(ctx context.Context, as agora.AgentID, c Command) (Outcome, error) {
	if c.Verb == Answer {
		c.Message.Indexed = true
	}
	c.ID, c.Agent = cmp.Or(c.Message.ID, c.ID, rand.Text()), agora.ToAgent(a.Principal().Tenant, as)
	if err := a.mayDo(&c); err != nil {
		return Outcome{}, err
	}
	return a.actingAs(as).do(ctx, &c)
}

// mayDo reports whether the actor itself may give a command. What the agent's session may do is its holder's to decide.
func (a *Actor) mayDo(c *Command) error {
	switch c.Verb {
	case Send, Answer:
		return a.mayTell(&c.Message)
	case Publish, OpenEvent, ContinueEvent:
		return a.mayEnter(policy.Publish, c.Space)
	case Join:
		return a.mayEnter(policy.Join, c.Space)
	}
	return nil
}

// mayTell reports whether the actor itself may say a message.
func (a *Actor) mayTell(m *agora.Message) error {
	g, to := a.grant(), string(m.To.Agent)
	if g.Grant == nil {
		return nil
	}
	why := g.Refuses(policy.Send, to)
	if why != "" && m.Kind == agora.Reply {
		why = g.RefusesWhole(policy.Reply)
	}
	return a.forbidden(why, addressing, to)
}

// alone does a command of an agent that has no session: a whole message is stored nevertheless, and it has no streams.
func (s actingAs) alone(ctx context.Context, c *Command) (Outcome, error) {
	switch c.Message.Part {
	case agora.Whole:
		return s.post(ctx, c, c.Message)
	case agora.Start:
		const needs = "a stream takes a connection of its sender, and '%s' has none"
		return Outcome{}, agora.Errorf(agora.InvalidRequest, needs, s.as)
	}
	return Outcome{}, agora.Errorf(agora.StreamNotFound, "'%s' has no connection, and so no stream that is open", s.as)
}

// CreateSpace makes a public space where it is missing. FORBIDDEN, RATE_LIMITED, INVALID_REQUEST, UNAVAILABLE.
func (a *Actor) CreateSpace(ctx context.Context, space string) error {
	if err := errors.Join(a.Check(), a.mayEnter(policy.Create, space), a.quota.Spend(0)); err != nil {
		return agora.AsError(err)
	}
	return a.node.hub.Create(ctx, a.Principal().Tenant, space)
}

// do has a command done by the holder of the agent's session, or by nobody's where it needs none.
func (s actingAs) do(ctx context.Context, c *Command) (Outcome, error) {
	if err := errors.Join(s.actor.Check(), s.actor.mayBe(s.as)); err != nil {
		return Outcome{}, agora.AsError(err)
	}
	n := s.actor.node
	for end := time.Now().Add(n.cfg.Patience); ; {
		out, err := n.holders.do(ctx, c, &s)
		if !errors.Is(err, errElsewhere) && code(err) != agora.Unavailable {
			return out, err
		}
		if !time.Now().Before(end) {
			if errors.Is(err, errElsewhere) {
				err = errUnreachable
			}
			return Outcome{}, err
		}
		if !pause.For(ctx, lookAgain) {
			return Outcome{}, agora.AsError(ctx.Err())
		}
	}
}

// errUnreachable is the answer of an Actor that has waited for the holder of a session in vain.
var errUnreachable = &agora.Error{
	Code: agora.Unavailable, Message: "the session of this agent can't be reached now", RetryAfter: time.Second,
}

// lookAgain is how long an Actor waits before it looks for the holder of a session again.
const lookAgain = 100 * time.Millisecond

// post stores a whole message outside the lanes of any session.
func (s actingAs) post(ctx context.Context, c *Command, m agora.Message) (Outcome, error) {
	if err := s.mayPost(ctx, &m); err != nil {
		return Outcome{}, err
	}
	if err := s.actor.quota.SpendFor(ctx, s.actor.as(s.as), len(m.Body)); err != nil {
		return Outcome{}, err
	}
	s.actor.quota.Count(len(m.Body))
	return s.store(ctx, c, m)
}

// store is post for what may be said, and was counted.
func (s actingAs) store(ctx context.Context, c *Command, m agora.Message) (Outcome, error) {
	if strings.Contains(m.ID, reserved) || strings.Contains(m.Stream, reserved) {
		return Outcome{}, errReserved
	}
	m.From, m.To.Tenant = s.as, s.actor.Principal().Tenant
	s.key(c, &m)
	if m.Kind == agora.Reply && m.Part == agora.Whole {
		if box := s.actor.node.approvals.of(&m); box != "" {
			if err := s.actor.node.approvals.decide(ctx, box, &m); err != nil {
				return Outcome{}, agora.AsError(err)
			}
			return Outcome{}, nil
		}
	}
	if err := checkDepth(&m, s.actor.node.cfg.Depth); err != nil {
		return Outcome{}, err
	}
	if err := s.actor.node.screens.check(ctx, s.actor, &m); err != nil {
		return Outcome{}, agora.AsError(err)
	}
	return s.mail(ctx, m)
}

// key gives a message the key of its agent and of the command's id alone: it is stored once, whatever edge stores it,
// and whether or not the agent has a session there, or at all.
func (s actingAs) key(c *Command, m *agora.Message) {
	m.N, m.Indexed = 0, false
	m.Meta.Trace, m.Meta.Receipts = cmp.Or(m.Meta.Trace, c.Trace), c.Receipts&^agora.Stored
	m.ID = Key(c.ID, []byte{byte(m.Kind), byte(m.Part)}, []byte(m.Stream), m.Body)
}

// mail stores a whole message that was admitted and has its key, outside any lane: an answer of a call in its box.
func (s actingAs) mail(ctx context.Context, m agora.Message) (Outcome, error) {
	if m.Kind == agora.Reply {
		box, ok, err := s.actor.node.calls.BoxOf(ctx, &m)
		if err != nil {
			return Outcome{}, agora.AsError(err)
		}
		if ok {
			m.To = box
		}
	}
	span := s.actor.node.cfg.Tracer.Send(&m)
	seq, err := s.actor.node.relay.Post(ctx, s.actor.Principal().Name, string(s.as)+keyMark+m.ID, m)
	span.End(agora.AsError(err))
	if err == nil {
		s.actor.node.stats.sent.Add(1)
	}
	return Outcome{Seq: seq}, err
}

// mayPost reports whether a reply of an agent without a session answers somebody, where it may say nothing else.
func (s actingAs) mayPost(ctx context.Context, m *agora.Message) error {
	g := s.actor.grant()
	if g.Grant == nil || m.Kind != agora.Reply {
		return nil
	}
	why := g.Refuses(policy.Send, string(m.To.Agent))
	if why == "" {
		return nil
	}
	tenant := s.actor.Principal().Tenant
	asked, err := s.actor.node.cfg.Presence.Addressees.WroteTo(ctx, tenant, m.To.Agent, agora.ToAgent(tenant, s.as))
	if err != nil || asked {
		return err
	}
	return s.actor.forbidden(why, addressing, string(m.To.Agent))
}
