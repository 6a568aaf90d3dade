package edge

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// pendingTime is how long a newcomer waits for another one that has its address to be there, or not.
const pendingTime = 2 * time.Second

// contestAddress decides what the agent that has an address means for a newcomer that was dialled there: nil is that this may claim again. Where it gives no
// sign of life, and is the same principal's, its session is ended: somebody else answers at its address.
func (n *Node) contestAddress(ctx context.Context, req *presence.ClaimRequest, taken *presence.AddressError, begun time.Time) error {
	refused := agora.Errorf(agora.AgentExists, "address %q is another agent's", taken.Address)
	o, is, err := n.cfg.Presence.LookDialled(ctx, req.Tenant, taken.By)
	switch {
	case err != nil:
		return agora.AsError(err)
	case !is || o.Dial.Address != taken.Address: // its claim is under way, or its session is just over
		if time.Since(begun) > pendingTime || !pause.For(ctx, 20*time.Millisecond) {
			return refused
		}
		return nil
	case !guard.Addresses:
		return n.cfg.Presence.FreeAddress(ctx, presence.Claim{Tenant: o.Tenant, Agent: o.Agent}, o.Dial)
	case o.Principal != req.Principal || n.answers(ctx, o):
		return refused
	}
	n.cfg.Log.Info("session ended whose address another agent has now", "agent", o.Agent, "tenant", o.Tenant, "address", taken.Address, "by", req.Agent)
	if o.Phase == presence.Active {
		// Where its edge does not answer, it finds its claim gone.
		_, _ = n.ask(ctx, o.Holder, question{Verb: "evict", Tenant: o.Tenant, Agent: o.Agent, Epoch: o.Epoch})
	}
	c := presence.Claim{Tenant: o.Tenant, Agent: o.Agent, Session: o.Session, Epoch: o.Epoch}
	if err := n.cfg.Presence.End(ctx, c); err != nil && !errors.Is(err, presence.ErrDeposed) {
		return agora.AsError(err)
	}
	if err := n.finish(ctx, o.Tenant, o.Agent, false); err != nil {
		return agora.AsError(err)
	}
	return nil
}

// answers reports whether an active session's connection gives a sign of life.
func (n *Node) answers(ctx context.Context, o presence.Orphan) bool {
	if o.Phase != presence.Active {
		return false
	}
	incumbent := presence.Claim{Incumbent: &presence.Past{Holder: o.Holder, Epoch: o.Epoch}}
	return n.probeIncumbent(ctx, incumbent, o.Tenant, o.Agent).Alive
}

// evicted ends the session of an epoch that this edge holds, as another agent is at its address.
func (n *Node) evicted(ctx context.Context, at agora.Address, epoch uint64) bool {
	for _, s := range n.of(at, epoch+1) {
		if s.claim.Epoch == epoch {
			s.endHere(ctx, Reason{Cause: TakenOver, Text: "another agent answers at its address"})
			return true
		}
	}
	return false
}
