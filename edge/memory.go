package edge

import (
	"github.com/agora-relay/agora/edge/admission"
)

// sheds returns what the edge's shedder looks at and does: it adds up what is held beside connections, of cards, for
// spaces and callers, and for agents that have gone and whose messages are still under way; queues for agents and
// spaces shrink.
func (n *Node) sheds() admission.ShedderConfig {
	return admission.ShedderConfig{
		Kept: n.kept,
		ShrinkQueues: func(share int) {
			n.cfg.Broker.Squeeze(share, admission.FullShare)
			n.hub.Squeeze(share, admission.FullShare)
		},
	}
}

// kept adds up what is held beside connections. Where nobody is asked who they are, all of it is nobody's in
// particular.
func (n *Node) kept(t *admission.Tally) {
	open := n.Unverified(n.ctx)
	for _, of := range []map[string]int64{n.hub.Held(), n.directory.Held()} {
		for tenant, held := range of {
			if open {
				tenant = ""
			}
			t.Add(admission.Owner{Tenant: tenant}, held)
		}
	}
	for by, held := range n.owner.Registered() {
		if open {
			by.Tenant = ""
		}
		t.Add(admission.Owner{Tenant: by.Tenant, Principal: by.Principal}, held)
	}
	n.limits.usage.Tally(admission.Bytes, t)
	n.calls.Held(t)
	for _, s := range n.sessions.allStopped() {
		t.Add(s.owner(), s.Held())
	}
}

// Held returns the bytes that the edge keeps for the session: what has come
// for its agent and was not pulled yet, and what the agent has sent that is not
// stored yet. It does not block.
func (s *Session) Held() int64 {
	return int64(s.mailbox.inbox.Held() + s.out.held() + s.cursor.held())
}
