package edge

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
)

// Reconsider holds what runs against rules and limits that have changed: who may
// not be its agent any more is closed, and who may not be in a space leaves it. It returns at once.
func (n *Node) Reconsider() {
	n.background(func() {
		for _, s := range n.sessions.all() {
			member{s}.reconsider()
		}
	})
}

// reconsider holds a session against what its agent may do now.
func (s member) reconsider() {
	if s.actor.grant().Grant == nil {
		return
	}
	if err := s.actor.mayBe(s.claim.Agent); err != nil {
		s.conn.Close(Reason{Cause: Refused, Code: agora.Forbidden, Text: agora.AsError(err).Message})
		return
	}
	for _, name := range s.cursor.spaces() {
		err := s.actor.mayEnter(policy.Join, name)
		if err == nil {
			continue
		}
		s.leave(s.node.ctx, name) // should it fail, the agent is a member still, and gets nothing here
		s.conn.Notify(Notice{Kind: NoticeFault, To: agora.ToSpace(s.claim.Tenant, name), Err: agora.AsError(err)})
	}
}
