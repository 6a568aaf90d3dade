package edge

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/spaces"
)

// What an Actor says, it says as an agent that it may be. A whole message is stored by the edge itself, under the name that the agent has given it.
// All else is of a session: whichever edge holds that does it, so it stands in the session's lanes, and counts against its rates. While a session moves, an Actor waits
// for its next holder, for as long as Config.Patience. Every verb blocks until what it stores is stored, and may be called
// from any number of goroutines; each of them has its own order.

// actingAs is an Actor as one of the agents that it may be.
type actingAs struct {
	actor *Actor
	as    agora.AgentID
}

func (a *Actor) actingAs(as agora.AgentID) actingAs { return actingAs{a, as} }

// Send says a message of the relay's verbs, with the fields that [Session.Send] takes. A whole one needs no session. With an ID on m it is the same
// message when it is sent again, whatever has become of the agent's session meanwhile. Errors: FORBIDDEN, those of a frame that is sent, UNAVAILABLE where the session can't be reached, and
// INVALID_REQUEST or STREAM_NOT_FOUND for a stream of who has none.
func (a *Actor) Send(ctx context.Context, as agora.AgentID, m agora.Message, w Want) (Outcome, error) {
	w.RequestID = cmp.Or(m.ID, w.RequestID, rand.Text())
	if err := a.actingAs(as).mayTell(&m); err != nil {
		return Outcome{}, err
	}
	return a.actingAs(as).say(ctx, act{Verb: verbSend, Message: &m}, w, a.actingAs(as).alone(ctx, m, w))
}

// alone returns what says a message of an agent that has no session: a whole one is stored all the same, and it has no streams.
func (s actingAs) alone(ctx context.Context, m agora.Message, w Want) func() (Outcome, error) {
	return func() (Outcome, error) {
		switch m.Part {
		case agora.Whole:
			return s.post(ctx, m, w)
		case agora.Start:
			return Outcome{}, agora.Errorf(agora.InvalidRequest, "a stream takes a connection of its sender, and '%s' has none", s.as)
		}
		return Outcome{}, agora.Errorf(agora.StreamNotFound, "'%s' has no connection, and so no stream that is open", s.as)
	}
}

// Publish puts an event into a space that the agent is in, like [Session.Publish].
func (a *Actor) Publish(ctx context.Context, as agora.AgentID, space string, data json.RawMessage, w Want) (Outcome, error) {
	return a.actingAs(as).inSpace(ctx, policy.Publish, act{Verb: verbPublish, Space: space, Data: data}, w)
}

// PublishStart opens an event that is streamed, like [Session.PublishStart]; its id is the outcome's.
func (a *Actor) PublishStart(ctx context.Context, as agora.AgentID, space string, data json.RawMessage, w Want) (Outcome, error) {
	return a.actingAs(as).inSpace(ctx, policy.Publish, act{Verb: verbOpen, Space: space, Data: data}, w)
}

// PublishPart goes on with a streamed event, like [Session.PublishPart].
func (a *Actor) PublishPart(ctx context.Context, as agora.AgentID, space, event string, part agora.Part, data json.RawMessage, w Want) (Outcome, error) {
	return a.actingAs(as).inSpace(ctx, policy.Publish, act{Verb: verbPart, Space: space, Event: event, Part: part, Data: data}, w)
}

// CancelEvent stops an event, like [Session.CancelEvent].
func (a *Actor) CancelEvent(ctx context.Context, as agora.AgentID, space, event string, w Want) error {
	_, err := a.actingAs(as).say(ctx, act{Verb: verbCancelEvent, Space: space, Event: event}, w, nil)
	return err
}

// Join has the session of an agent join a space, like [Session.Join]. Its connection gets the events.
func (a *Actor) Join(ctx context.Context, as agora.AgentID, space string, w spaces.Where) (spaces.Joined, error) {
	out, err := a.actingAs(as).inSpace(ctx, policy.Join, act{Verb: verbJoin, Space: space, Where: w}, Want{})
	return out.Joined, err
}

// Leave has the session of an agent leave a space, like [Session.Leave].
func (a *Actor) Leave(ctx context.Context, as agora.AgentID, space string) error {
	_, err := a.actingAs(as).say(ctx, act{Verb: verbLeave, Space: space}, Want{}, nil)
	return err
}

// Ack acknowledges for the session of an agent, like [Session.Ack].
func (a *Actor) Ack(ctx context.Context, as agora.AgentID, space string, seq uint64) error {
	_, err := a.actingAs(as).say(ctx, act{Verb: verbAck, Space: space, Seq: seq}, Want{}, nil)
	return err
}

// CreateSpace makes a public space where it is missing. FORBIDDEN, RATE_LIMITED, INVALID_REQUEST, UNAVAILABLE.
func (a *Actor) CreateSpace(ctx context.Context, space string) error {
	if err := errors.Join(a.Check(), a.mayEnter(policy.Create, space), a.quota.Spend(0)); err != nil {
		return agora.AsError(err)
	}
	return a.node.hub.Create(ctx, a.Principal().Tenant, space)
}

// inSpace says something in a space.
func (s actingAs) inSpace(ctx context.Context, v policy.Verb, what act, w Want) (Outcome, error) {
	if err := s.actor.mayEnter(v, what.Space); err != nil {
		return Outcome{}, err
	}
	return s.say(ctx, what, w, nil)
}

// mayTell tells whether the actor itself may say a message. What the agent's session may say is its holder's to decide.
func (s actingAs) mayTell(m *agora.Message) error {
	g, to := s.actor.grant(), string(m.To.Agent)
	if g.Grant == nil {
		return nil
	}
	why := g.Refuses(policy.Send, to)
	if why != "" && m.Kind == agora.Reply {
		why = g.RefusesWhole(policy.Reply)
	}
	return s.actor.forbidden(why, addressing, to)
}

// say has an act done by the holder of the agent's session. Where there is no session, alone does it; nil for nobody.
func (s actingAs) say(ctx context.Context, what act, w Want, alone func() (Outcome, error)) (Outcome, error) {
	if err := errors.Join(s.actor.Check(), s.actor.mayBe(s.as)); err != nil {
		return Outcome{}, agora.AsError(err)
	}
	n := s.actor.node
	what.Agent = agora.ToAgent(s.actor.Principal().Tenant, s.as)
	what.ID, what.Want, what.Trace, what.Request = cmp.Or(w.RequestID, rand.Text()), w.Receipts, w.Trace, w.Request
	for end := time.Now().Add(n.cfg.Patience); ; {
		out, err := n.acts.perform(ctx, &what, alone)
		if !errors.Is(err, errElsewhere) && code(err) != agora.Unavailable {
			return out, err
		}
		if !time.Now().Before(end) {
			if errors.Is(err, errElsewhere) {
				err = &agora.Error{Code: agora.Unavailable, Message: "the session of this agent can't be reached now", RetryAfter: time.Second}
			}
			return Outcome{}, err
		}
		if !pause.For(ctx, lookAgain) {
			return Outcome{}, agora.AsError(ctx.Err())
		}
	}
}

// lookAgain is how long an Actor waits before it looks for the holder of a session again.
const lookAgain = 100 * time.Millisecond

// post stores a whole message outside the lanes of any session.
func (s actingAs) post(ctx context.Context, m agora.Message, w Want) (Outcome, error) {
	if err := s.mayPost(ctx, &m); err != nil {
		return Outcome{}, err
	}
	if err := s.actor.quota.SpendFor(ctx, s.actor.as(s.as), len(m.Body)); err != nil {
		return Outcome{}, err
	}
	s.actor.quota.Count(len(m.Body))
	return s.store(ctx, m, w)
}

// store is post for what may be said, and was counted. The message's key is the agent's and the id's alone: it is stored once, whatever edge stores it, and whether or not the agent
// has a session there, or at all.
func (s actingAs) store(ctx context.Context, m agora.Message, w Want) (Outcome, error) {
	if strings.Contains(m.ID, reserved) || strings.Contains(m.Stream, reserved) {
		return Outcome{}, errReserved
	}
	m.From, m.To.Tenant, m.N, m.Indexed = s.as, s.actor.Principal().Tenant, 0, false
	m.Meta.Trace, m.Meta.Receipts = cmp.Or(m.Meta.Trace, w.Trace), w.Receipts&^agora.Stored
	m.ID = Key(w.RequestID, []byte{byte(m.Kind), byte(m.Part)}, []byte(m.Stream), m.Body)
	if box := s.actor.node.approvals.of(&m); box != "" {
		if err := s.actor.node.approvals.decide(ctx, box, &m); err != nil {
			return Outcome{}, agora.AsError(err)
		}
		return Outcome{}, nil
	}
	if err := checkDepth(&m, s.actor.node.cfg.Depth); err != nil {
		return Outcome{}, err
	}
	if err := s.actor.node.screens.check(ctx, s.actor, &m); err != nil {
		return Outcome{}, agora.AsError(err)
	}
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

// mayPost tells whether a reply of an agent without a session answers somebody, where it may say nothing else.
func (s actingAs) mayPost(ctx context.Context, m *agora.Message) error {
	g := s.actor.grant()
	if g.Grant == nil || m.Kind != agora.Reply {
		return nil
	}
	why := g.Refuses(policy.Send, string(m.To.Agent))
	if why == "" {
		return nil
	}
	asked, err := s.actor.node.cfg.Presence.Addressees.WroteTo(ctx, s.actor.Principal().Tenant, m.To.Agent, agora.ToAgent(s.actor.Principal().Tenant, s.as))
	if err != nil || asked {
		return err
	}
	return s.actor.forbidden(why, addressing, string(m.To.Agent))
}
