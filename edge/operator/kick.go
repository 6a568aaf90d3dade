package operator

import (
	"context"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// Kick ends an agent's session, wherever in the cluster it is: its connection is closed as [edge.Kicked], what it has
// open is aborted for its receivers, it leaves its spaces, and its id is free. Its mailbox stays. The agent may connect
// again: who is to be kept out must lose its token. It returns when the session is over. AGENT_NOT_FOUND, AGENT_OFFLINE
// where there is none, UNAVAILABLE.
func (s *Service) Kick(ctx context.Context, tenant string, id agora.AgentID) error {
	sight, err := s.presence.Operators.Inspect(ctx, tenant, id)
	switch {
	case err != nil:
		return err
	case !sight.Known:
		return agora.UnknownAgent(id)
	case sight.Phase == presence.None:
		return agora.Errorf(agora.AgentOffline, "agent %q has no session", id)
	case sight.Phase == presence.Active:
		// Where its edge does not answer, the session is ended without it: that edge finds its claim gone.
		err := s.node.Inquiries().Kick(ctx, sight.Holder, agora.ToAgent(tenant, id), sight.Epoch)
		if err != nil && !errors.Is(err, broker.ErrNoEdge) && ctx.Err() != nil {
			return err
		}
	}
	if err := s.presence.Operators.EndSession(ctx, tenant, id); err != nil && !errors.Is(err, presence.ErrDeposed) {
		return err
	}
	s.log.Info("session ended by an operator", "agent", id, "tenant", tenant, "session", sight.Session)
	return s.node.Reap(ctx, tenant, id)
}
