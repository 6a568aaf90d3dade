package edge

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/pause"
)

// Refresh has the session go on with other credentials of the same party, and
// returns when those end, zero for never. It may block for as long as their
// verifier does. UNAUTHORIZED, FORBIDDEN, RATE_LIMITED and UNAVAILABLE leave everything as it was.
func (s *Session) Refresh(ctx context.Context, token string) (time.Time, error) {
	if err := s.actor.quota.Spend(0); err != nil { // a signature costs more than a message
		return time.Time{}, err
	}
	p, err := s.node.credentials.identify(ctx, Credentials{Token: token})
	if err != nil {
		return time.Time{}, err
	}
	old := s.actor.Principal()
	if p.Name != old.Name || p.Tenant != old.Tenant {
		return time.Time{}, agora.Errorf(agora.Forbidden, "this token is of another party")
	}
	if !p.May(s.claim.Agent) {
		return time.Time{}, agora.Errorf(agora.Forbidden, "this token may not be agent %q", s.claim.Agent)
	}
	if err := s.actor.forbidden(s.node.credentials.grantOf(p).Refuses(policy.Be, string(s.claim.Agent)), "this principal may not be agent %q", string(s.claim.Agent)); err != nil {
		return time.Time{}, err
	}
	s.actor.principal.Store(p)
	s.node.background(s.reconsider)
	if s.claim.Dialled {
		s.node.background(func() { s.node.dials.vouchAgain(s) })
	}
	if left, ends := s.credentialsLeft(); ends {
		s.schedule(left)
	}
	s.revalidate()
	return p.Expires, nil
}

// revocationEvery is how often the node looks whether anything was taken back.
const revocationEvery = time.Second

// revocationLoop closes the sessions whose credentials are taken back, until ctx ends.
func (t *sessionTable) revocationLoop(ctx context.Context, w Warden) {
	for seen := w.Version(); pause.For(ctx, revocationEvery); {
		now := w.Version()
		if now == seen {
			continue
		}
		seen = now
		for _, s := range t.all() {
			s.revalidate()
		}
	}
}
