package edge

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/approval"
)

// RequireApproval asks for approval of what m says, in the name of an agent, once under m.ID: it is stored first, and then told to m.To.Agent by mail, unless
// that is [agora.Cluster]. m.Meta.Deadline is when it expires, where that is sooner than the approvals' own expiry. Asked again, it returns what stands,
// which may be decided. It takes some round trips. Errors: those of [approval.Approvals.Ask], FORBIDDEN, RATE_LIMITED, AGENT_NOT_FOUND.
func (a *Actor) RequireApproval(ctx context.Context, as agora.AgentID, m agora.Message) (approval.Approval, error) {
	n, tenant := a.node, a.Principal().Tenant
	if n.cfg.Approvals == nil {
		return approval.Approval{}, agora.Errorf(agora.InvalidRequest, "this edge keeps no approvals")
	}
	if err := a.mayRequire(ctx, as, &m); err != nil {
		return approval.Approval{}, err
	}
	q, err := n.cfg.Approvals.Ask(ctx, approval.Approval{
		Tenant: tenant, ID: m.ID, Agent: as, To: m.To.Agent, Request: m.Body, Head: m.Meta.Head, Trace: m.Meta.Trace, Expires: m.Meta.Deadline,
	})
	if err != nil || q.State != approval.Pending || q.To == agora.Cluster {
		return q, err
	}
	m.Kind, m.Part, m.From, m.To = agora.Request, agora.Whole, as, agora.ToAgent(tenant, q.To)
	m.Meta.Call, m.Meta.Deadline = approval.Box(tenant, as, q.ID), q.Expires
	_, err = n.relay.Post(ctx, "approval/"+m.Meta.Call, m)
	return q, err
}

// mayRequire tells whether the actor may ask for approval, and the addressee be told.
func (a *Actor) mayRequire(ctx context.Context, as agora.AgentID, m *agora.Message) error {
	if m.To.Agent != agora.Cluster {
		if err := a.mayCall(ctx, as, m); err != nil {
			return err
		}
		return a.node.relay.Reach(ctx, agora.ToAgent(a.Principal().Tenant, m.To.Agent))
	}
	if err := errors.Join(a.Check(), a.node.Ready(), a.mayBe(as)); err != nil {
		return agora.AsError(err)
	}
	return a.quota.SpendFor(ctx, a.as(as), len(m.Body))
}

// AwaitApproval asks as RequireApproval does, blocks until that is decided, and returns the decision, which is not mailed to the asker then. Errors are those of
// RequireApproval and [approval.Approvals.Await].
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

// waiterName is the name under which edges are asked whether somebody waits there for a decision.
func waiterName(tenant string, asker agora.AgentID, id string) string {
	return "approval." + approval.Box(tenant, asker, id)
}

// Awaited reports whether somebody waits for a decision, at whatever edge. A round trip.
func (n *Node) Awaited(ctx context.Context, q *approval.Approval) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := n.cfg.Broker.Ask(ctx, waiterName(q.Tenant, q.Agent, q.ID), nil)
	return !errors.Is(err, broker.ErrNoEdge)
}

// DeliverDecision is that of an [approval.Mailer]. One who is not known any more gets nothing.
func (n *Node) DeliverDecision(ctx context.Context, q *approval.Approval) error {
	m := Decision(q)
	_, err := n.relay.Post(ctx, "approved/"+approval.Box(q.Tenant, q.Agent, q.ID), m)
	if code(err) == agora.AgentNotFound || code(err) == agora.AgentOffline {
		return nil
	}
	return err
}

// Decision returns a decision as the reply that its asker gets: what has decided it, byte for byte, and from who said it; else from the cluster,
// {"approved", "by", "at", "note"?, "expired"?}, with the time in Unix seconds.
func Decision(q *approval.Approval) agora.Message {
	m := agora.Message{
		Kind: agora.Reply, From: agora.Cluster, To: agora.ToAgent(q.Tenant, q.Agent), Meta: agora.Meta{Parent: q.ID, Request: q.ID, Trace: q.Trace},
	}
	if q.Answer != nil {
		m.From, m.Body = agora.AgentID(q.By), q.Answer
		return m
	}
	b, err := json.Marshal(decision{q.State == approval.Approved, q.By, q.Decided.Unix(), q.Note, q.State == approval.Expired})
	if err != nil {
		panic(err) // a value that can always be written
	}
	m.Body = b
	return m
}

// decision is what the asker is told of one that no envelope has made.
type decision struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
	At       int64  `json:"at"`
	Note     string `json:"note,omitempty"`
	Expired  bool   `json:"expired,omitempty"`
}

// decided decides an approval by a reply that answers it, and reports whether it is one.
func (n *Node) decided(ctx context.Context, m *agora.Message) (bool, error) {
	box := n.approvalOf(m)
	if box == "" {
		return false, nil
	}
	reply := *m
	reply.To = agora.ToBox(m.To.Tenant, box, m.To.Agent)
	_, err := n.cfg.Approvals.Answer(ctx, &reply)
	return true, err
}

// approvalOf returns the box of the approval that a reply answers: that which its request has named, or the one that is pending; empty for none.
func (n *Node) approvalOf(m *agora.Message) string {
	switch {
	case n.cfg.Approvals == nil || m.Kind != agora.Reply || m.Part != agora.Whole:
		return ""
	case m.To.IsBox() && approval.IsBox(m.To.Space):
		return m.To.Space
	case m.Meta.Parent != "":
		if n.cfg.Approvals.IsPending(m.To.Tenant, m.To.Agent, m.From, m.Meta.Parent) {
			return approval.Box(m.To.Tenant, m.To.Agent, m.Meta.Parent)
		}
		return ""
	}
	only := ""
	for _, q := range n.cfg.Approvals.Pending(m.To.Tenant, m.From) {
		if q.Agent != m.To.Agent {
			continue
		}
		if only != "" {
			return ""
		}
		only = approval.Box(q.Tenant, q.Agent, q.ID)
	}
	return only
}

// decide is [Node.decided] for a reply of the session's agent: numbers before its own are settled first, as its receipt speaks of them as well.
func (s mailer) decide(ctx context.Context, m *agora.Message, w Want) (is bool, err error) {
	if s.node.approvalOf(m) == "" {
		return false, nil
	}
	peer := m.To.Peer()
	if m.N > 0 {
		if err := s.out.sender().Flush(ctx); err != nil {
			return true, agora.AsError(err)
		}
	}
	if _, err := s.node.decided(ctx, m); err != nil {
		return true, agora.AsError(err)
	}
	s.out.sender().Used(peer, m.N)
	if m.N > 0 {
		s.out.receipts.add(Notice{Kind: NoticeReceipt, Tier: agora.Stored, To: peer, N: m.N}, s.conn)
		return true, nil
	}
	s.out.toldStored(peer, w)
	return true, nil
}

var _ approval.Mailer = (*Node)(nil)
