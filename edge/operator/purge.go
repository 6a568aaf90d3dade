package operator

import (
	"context"

	"github.com/agora-relay/agora"
)

// Purge drops what an agent has not read of its mailbox, what it has read before along with it, and returns how many
// records were unread. The agent is told by a gap when it reads next. AGENT_NOT_FOUND, UNAVAILABLE.
func (s *Service) Purge(ctx context.Context, tenant string, id agora.AgentID) (unread int, err error) {
	v, _, err := s.viewAgent(ctx, tenant, id)
	if err != nil {
		return 0, err
	}
	unread, err = s.broker.Purge(ctx, agora.ToAgent(tenant, id), v.Confirmed)
	if err == nil {
		s.log.Info("mailbox purged by an operator", "agent", id, "tenant", tenant, "unread_records", unread)
	}
	return unread, err
}
