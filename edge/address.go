package edge

import (
	"context"
	"errors"
	"fmt"
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
	refused := &agora.Error{Code: agora.AgentExists, Message: fmt.Sprintf("address %q is another agent's", taken.Address), Cause: taken}
	o, is, err := n.cfg.Presence.Dials.Find(ctx, req.Tenant, taken.By)
	switch {
	case err != nil:
		return agora.AsError(err)
	case !is || o.Dial.Address != taken.Address: // its claim is under way, or its session is just over
		if time.Since(begun) > pendingTime || !pause.For(ctx, 20*time.Millisecond) {
			return refused
		}
		return nil
	case !guard.Addresses:
		return n.cfg.Presence.Dials.FreeAddress(ctx, presence.Claim{Tenant: o.Tenant, Agent: o.Agent}, o.Dial)
	case o.Principal != req.Principal || n.answers(ctx, o):
		return refused
	}
	n.cfg.Log.Info("session ended whose address another agent has now", "agent", o.Agent, "tenant", o.Tenant, "address", taken.Address, "by", req.Agent)
	if err := n.endDialled(ctx, o, "evict"); err != nil && !errors.Is(err, presence.ErrDeposed) {
		return agora.AsError(err)
	}
	return nil
}

// AddressTaken returns the address that [Actor.Open] was refused, as another agent of the tenant has it; taken is false for any other error, such as that another
// connection has the id.
func AddressTaken(err error) (address string, taken bool) {
	e, taken := errors.AsType[*presence.AddressError](err)
	if !taken {
		return "", false
	}
	return e.Address, true
}

// answers reports whether an active session's connection gives a sign of life.
func (n *Node) answers(ctx context.Context, o presence.Orphan) bool {
	if o.Phase != presence.Active {
		return false
	}
	incumbent := presence.Claim{Incumbent: &presence.Past{Holder: o.Holder, Epoch: o.Epoch}}
	return n.probeIncumbent(ctx, incumbent, o.Tenant, o.Agent).Alive
}
