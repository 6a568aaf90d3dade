package edge

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/relay"
)

// approvals have approvals be decided by replies, and mail decisions to their askers.
type approvals struct {
	book   *approval.Approvals // nil where the edge keeps none
	broker *broker.Broker
	relay  *relay.Relay
}

// waiterName is the name under which edges are asked whether somebody waits there for a decision.
func waiterName(tenant string, asker agora.AgentID, id string) string {
	return "approval." + approval.Box(tenant, asker, id)
}

// Awaited reports whether somebody waits for a decision, at whatever edge. A round trip.
func (d *approvals) Awaited(ctx context.Context, q *approval.Approval) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := d.broker.Ask(ctx, waiterName(q.Tenant, q.Agent, q.ID), nil)
	return !errors.Is(err, broker.ErrNoEdge)
}

// DeliverDecision is that of an [approval.Mailer]. One who is not known any more gets nothing.
func (d *approvals) DeliverDecision(ctx context.Context, q *approval.Approval) error {
	m := Decision(q)
	_, err := d.relay.Post(ctx, "", "approved/"+approval.Box(q.Tenant, q.Agent, q.ID), m)
	if code(err) == agora.AgentNotFound || code(err) == agora.AgentOffline {
		return nil
	}
	return err
}

// Decision returns a decision as the reply that its asker gets: what has decided it, byte for byte, and from who said
// it; else from the cluster, {"approved", "by", "at", "note"?, "expired"?}, with the time in Unix seconds.
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

// decision is what the asker learns of one that no envelope has made.
type decision struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
	At       int64  `json:"at"`
	Note     string `json:"note,omitempty"`
	Expired  bool   `json:"expired,omitempty"`
}

// decide decides the approval of a box by a reply that answers it.
func (d *approvals) decide(ctx context.Context, box string, m *agora.Message) error {
	reply := *m
	reply.To = agora.ToBox(m.To.Tenant, box, m.To.Agent)
	_, err := d.book.Answer(ctx, &reply)
	return err
}

// of returns the box of the approval that a whole reply answers: that which its request has named, or the one that is
// pending; empty for none.
func (d *approvals) of(m *agora.Message) string {
	switch {
	case d.book == nil:
		return ""
	case m.To.IsBox() && approval.IsBox(m.To.Space):
		return m.To.Space
	case m.Meta.Parent != "":
		if d.book.IsPending(m.To.Tenant, m.To.Agent, m.From, m.Meta.Parent) {
			return approval.Box(m.To.Tenant, m.To.Agent, m.Meta.Parent)
		}
		return ""
	}
	only := ""
	for _, q := range d.book.Pending(m.To.Tenant, m.From) {
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

var _ approval.Mailer = (*approvals)(nil)

// decide decides an approval by a whole reply of the session's agent, and reports whether it is one: numbers before its
// own are settled first, as its receipt speaks of them as well. What it answered when it came it answers then, though
// another has decided meanwhile.
func (o *outgoing) decide(ctx context.Context, m *agora.Message, c *Command) (is bool, err error) {
	box := o.node.approvals.of(m)
	if box == "" {
		return false, nil
	}
	if m.To.IsBox() && m.Meta.Parent == "" && o.node.approvals.book.IsDecided(m.To.Tenant, box) && !o.sender().HasDecided(box) {
		m.To = m.To.Peer() // what it could answer is pending no more
		return false, nil
	}
	peer := m.To.Peer()
	if m.N > 0 {
		if err := o.sender().Flush(ctx); err != nil {
			return true, agora.AsError(err)
		}
	}
	if err := o.node.approvals.decide(ctx, box, m); err != nil {
		return true, agora.AsError(err)
	}
	o.sender().Decided(box, m)
	if m.N > 0 {
		o.receipts.add(Notice{Kind: NoticeReceipt, Tier: agora.Stored, To: peer, N: m.N}, o.conn)
		return true, nil
	}
	o.toldStored(peer, c)
	return true, nil
}
