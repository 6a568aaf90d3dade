package edge

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// announce tells agent.status, behind: nobody waits for it.
func (n *Node) announce(c presence.Claim, status agora.AgentStatus) {
	n.directory.Touch(c.Tenant, c.Agent)
	n.work.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, n.cfg.Lease)
		defer cancel()
		if err := n.tell(ctx, c, status); err != nil {
			n.cfg.Log.Warn("status was not announced", "agent", c.Agent, "err", err)
		}
	})
}

// tell tells agent.status what has become of an agent. Who asks this edge for the directory sees it already.
func (n *Node) tell(ctx context.Context, c presence.Claim, status agora.AgentStatus) error {
	n.directory.Touch(c.Tenant, c.Agent)
	return n.hub.AnnounceStatus(ctx, c, status)
}

// setCard has the directory show another card of the session's agent, and tells of it where it is another one.
func (s *Session) setCard(ctx context.Context, card agora.Agent) error {
	changed, err := s.node.cfg.Presence.Directory.SetCard(ctx, s.claim, card)
	if changed {
		s.node.announce(s.claim, agora.Updated)
	}
	return err
}
