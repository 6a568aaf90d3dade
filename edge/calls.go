package edge

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// newCalls returns the calls of a node's callers.
func newCalls(cfg Config, o *ownership.Owner, r *relay.Relay, limits *limiters) *call.Registry {
	return call.New(call.Config{
		Broker: cfg.Broker, Presence: cfg.Presence, Holder: o.Holder(), Reach: r.Reach, Wrote: r.Wrote, Pressed: r.Pressed,
		Usage: limits.usage,
		Known: func(ctx context.Context, tenant string, id agora.AgentID) (bool, error) {
			found, err := cfg.Presence.Addressees.Lookup(ctx, tenant, id)
			return err == nil && found.State != presence.Unknown, err
		},
		Delivers: o.MayDeliver, Valid: o.Lease().Valid, MaxAge: cfg.MaxAge, MaxRecords: cfg.MaxRecords, Doubt: cfg.Doubt, Grace: cfg.Presence.Grace(), Log: cfg.Log,
	})
}

// Call asks an agent on behalf of another one, which need have no session: q.Message has To.Agent, Body and what else
// the one who is asked is to get; where q.Streams, what [call.Answer.Say] adds counts against the agent's rate at this
// edge. The answer is found at this edge whatever edge the agent is at, or moves to. The caller owes it a call of
// Close. Errors are those of [call.Registry.Start], and FORBIDDEN.
func (a *Actor) Call(ctx context.Context, as agora.AgentID, q call.Request) (*call.Answer, error) {
	n, m := a.node, &q.Message
	if err := a.actingAs(as).mayCall(ctx, m); err != nil {
		return nil, err
	}
	m.From, m.To, q.Principal = as, agora.ToAgent(a.Principal().Tenant, m.To.Agent), a.Principal().Name
	if q.Within > 0 && m.Meta.Deadline.IsZero() {
		m.Meta.Deadline = n.cfg.Broker.Now().Add(q.Within)
	}
	if q.Streams {
		m.Part, q.Pace = agora.Start, a.actingAs(as).paces()
	}
	if err := checkDepth(m, n.cfg.Depth); err != nil {
		return nil, err
	}
	if !q.Checked {
		if err := n.screens.check(ctx, a, m); err != nil {
			return nil, err
		}
	}
	span := n.cfg.Tracer.Send(m)
	answer, err := n.calls.Start(ctx, q)
	if err != nil {
		span.End(agora.AsError(err))
		return nil, err
	}
	span.End(nil)
	a.quota.Count(len(m.Body))
	return answer, nil
}

// paces returns what takes the parts of a stream from an agent's rate at this edge, and says how long each has to wait.
func (s actingAs) paces() func(bytes int) time.Duration {
	reserve := s.actor.quota.ReserverFor(agora.ToAgent(s.actor.Principal().Tenant, s.as))
	return func(bytes int) time.Duration {
		s.actor.quota.Count(bytes)
		return reserve(bytes)
	}
}

// CancelCall ends a call that was made under a name, by whatever edge, in the name of an agent: the one who waits for
// its answer gets STREAM_ABORTED, and who was asked learns that nobody does. It returns false where no such call is
// open. FORBIDDEN, RATE_LIMITED, UNAVAILABLE.
func (a *Actor) CancelCall(ctx context.Context, as, to agora.AgentID, name string) (bool, error) {
	err := errors.Join(a.Check(), a.mayBe(as))
	if err == nil {
		err = a.quota.SpendFor(ctx, a.as(as), 0)
	}
	if err != nil {
		return false, agora.AsError(err)
	}
	done, err := a.node.calls.Cancel(ctx, a.Principal().Tenant, as, to, name)
	if err != nil {
		return false, agora.AsError(err)
	}
	return done, nil
}

// mayCall reports whether the actor may ask an agent in the name of another, now.
func (s actingAs) mayCall(ctx context.Context, m *agora.Message) error {
	n := s.actor.node
	if err := s.actor.Check(); err != nil {
		return err
	}
	if err := n.Ready(); err != nil {
		e := agora.AsError(err)
		e.RetryAfter = time.Second
		return e
	}
	if err := s.actor.mayBe(s.as); err != nil {
		return err
	}
	if err := s.actor.forbidden(s.actor.grant().Refuses(policy.Send, string(m.To.Agent)), addressing, string(m.To.Agent)); err != nil {
		return err
	}
	if err := n.limits.Shedder.FullFor(s.actor.Owner(s.as)); err != nil {
		return err
	}
	return s.actor.quota.SpendFor(ctx, s.actor.as(s.as), len(m.Body))
}

// Request is [Actor.Call] in the name of the session's own agent.
func (s *Session) Request(ctx context.Context, q call.Request) (*call.Answer, error) {
	return s.actor.Call(ctx, s.claim.Agent, q)
}

// SpendBeside counts what an agent asks of the cluster beside what it says to others, as a sign of life or a card,
// against what it may: see [admission.Quota.SpendBeside]. RATE_LIMITED.
func (a *Actor) SpendBeside(as agora.AgentID) error { return a.quota.SpendBeside(a.as(as), 0) }

// SpendRequest counts a request of the actor's that is said as no agent in particular. RATE_LIMITED.
func (a *Actor) SpendRequest() error { return a.quota.Spend(0) }

// Pace counts n bytes of a message that a door passes on within a session, in the name of an agent, and waits for as
// long as that is faster than the agent may speak.
func (a *Actor) Pace(ctx context.Context, as agora.AgentID, n int) error {
	a.quota.Count(n)
	if !pause.For(ctx, a.quota.ReserveFor(a.as(as), n)) {
		return agora.AsError(ctx.Err())
	}
	return nil
}

// Spend counts a call of n bytes that a door passes on by itself, in the name of an agent, against what that may say,
// as [Actor.Call] counts its own. RATE_LIMITED where that is spent.
func (a *Actor) Spend(ctx context.Context, as agora.AgentID, n int) error {
	return a.quota.SpendFor(ctx, a.as(as), n)
}
