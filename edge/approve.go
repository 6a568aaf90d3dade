package edge

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/internal/pause"
)

// RequireApproval asks for approval of what m says, in the name of an agent, once under m.ID: it is stored first, and
// then told to m.To.Agent by mail, unless that is [agora.Cluster]. m.Meta.Deadline is when it expires, where that is
// sooner than the approvals' own expiry. Asked again, it returns what stands, which may be decided. It takes some round
// trips. Errors: those of [approval.Approvals.Ask], FORBIDDEN, RATE_LIMITED, AGENT_NOT_FOUND.
func (a *Actor) RequireApproval(ctx context.Context, as agora.AgentID, m agora.Message) (approval.Approval, error) {
	n, tenant := a.node, a.Principal().Tenant
	if n.cfg.Approvals == nil {
		return approval.Approval{}, agora.Errorf(agora.InvalidRequest, "this edge keeps no approvals")
	}
	if err := a.actingAs(as).mayRequire(ctx, &m); err != nil {
		return approval.Approval{}, err
	}
	q, err := n.cfg.Approvals.Ask(ctx, approval.Approval{
		Tenant: tenant, ID: m.ID, Agent: as, Owner: a.Principal().Name, To: m.To.Agent, Request: m.Body, Head: m.Meta.Head, Trace: m.Meta.Trace, Expires: m.Meta.Deadline,
	})
	if err != nil || q.State != approval.Pending || q.To == agora.Cluster {
		return q, err
	}
	m.Kind, m.Part, m.From, m.To = agora.Request, agora.Whole, as, agora.ToAgent(tenant, q.To)
	m.Meta.Call, m.Meta.Deadline = approval.Box(tenant, as, q.ID), q.Expires
	_, err = n.relay.Post(ctx, a.Principal().Name, "approval/"+m.Meta.Call, m)
	return q, err
}

// mayRequire reports whether the actor may ask for approval, and the addressee be told.
func (s actingAs) mayRequire(ctx context.Context, m *agora.Message) error {
	if m.To.Agent != agora.Cluster {
		if err := s.mayCall(ctx, m); err != nil {
			return err
		}
		return s.actor.node.relay.Reach(ctx, agora.ToAgent(s.actor.Principal().Tenant, m.To.Agent))
	}
	if err := errors.Join(s.actor.Check(), s.actor.node.Ready(), s.actor.mayBe(s.as)); err != nil {
		return agora.AsError(err)
	}
	return s.actor.quota.SpendFor(ctx, s.actor.as(s.as), len(m.Body))
}

// AwaitApproval asks as RequireApproval does, blocks until that is decided, and returns the decision, which is not
// mailed to the asker then. Errors are those of RequireApproval and [approval.Approvals.Await].
func (a *Actor) AwaitApproval(ctx context.Context, as agora.AgentID, m agora.Message) (approval.Approval, error) {
	n, tenant := a.node, a.Principal().Tenant
	stop, err := n.cfg.Broker.Answer(waiterName(tenant, as, m.ID), func(context.Context, []byte) []byte { return nil })
	if err != nil {
		return approval.Approval{}, err
	}
	defer stop()
	q, err := a.RequireApproval(ctx, as, m)
	if err != nil || q.State != approval.Pending {
		return q, err
	}
	return n.cfg.Approvals.Await(ctx, tenant, as, q.ID)
}

// decisionTime bounds how long a decision takes, from the question whether an asker waits for it until every edge knows
// it.
const decisionTime = 10 * time.Second

// LeaveApproval mails a decision that the asker did not wait for although the edge that decided believed so. A door
// calls it when the asker's connection has ended while AwaitApproval ran, or before the door had answered. It does not
// block: it mails what is decided in the next 10 seconds, once.
func (a *Actor) LeaveApproval(as agora.AgentID, id string) {
	n, tenant := a.node, a.Principal().Tenant
	n.background(func() {
		ctx, cancel := context.WithTimeout(n.ctx, decisionTime)
		defer cancel()
		q, err := n.cfg.Approvals.Await(ctx, tenant, as, id)
		if err != nil || q.Mail { // what has the mark is mailed by the edge that decided
			return
		}
		for n.approvals.DeliverDecision(ctx, &q) != nil && pause.For(ctx, time.Second) {
		}
	})
}
