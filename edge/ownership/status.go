package ownership

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// status tells what has become of agents.
type status struct{ cfg *Config }

// announce tells agent.status, behind: nobody waits for it.
func (s *status) announce(c presence.Claim, status agora.AgentStatus) {
	s.cfg.Directory.Touch(c.Tenant, c.Agent)
	s.cfg.Go(func() {
		ctx, cancel := context.WithTimeout(s.cfg.Context, s.cfg.Lease)
		defer cancel()
		if err := s.tell(ctx, c, status); err != nil {
			s.cfg.Log.Warn("status was not announced", "agent", c.Agent, "err", err)
		}
	})
}

// tell tells agent.status what has become of an agent. Anyone who asks this edge for the directory sees it already.
func (s *status) tell(ctx context.Context, c presence.Claim, status agora.AgentStatus) error {
	s.cfg.Directory.Touch(c.Tenant, c.Agent)
	return s.cfg.Hub.AnnounceStatus(ctx, c, status)
}

// noteTime bounds how long history holds up an edge that closes.
const noteTime = time.Second

// note writes an agent's history.
func (s *status) note(c presence.Claim, e presence.Event) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.cfg.Context), noteTime) // the last ones are written while the edge closes
	defer cancel()
	if err := s.cfg.Presence.Operators.Note(ctx, c.Tenant, c.Agent, e); err != nil {
		s.cfg.Log.Debug("history was not written", "agent", c.Agent, "err", err)
	}
}
