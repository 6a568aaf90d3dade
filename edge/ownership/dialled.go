package ownership

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

// dialled ends sessions whose connections edges have dialled: each has an address that is its agent's alone.
type dialled struct {
	cfg    *Config
	reaper *reaper
}

// pendingTime is how long a newcomer waits for another one that has its address to be there, or not.
const pendingTime = 2 * time.Second

// contestAddress decides what the agent that has an address means for a newcomer that was dialled there: nil is that
// this may claim again. Where it gives no sign of life, and is the same principal's, its session is ended: somebody
// else answers at its address.
func (d *dialled) contestAddress(ctx context.Context, req *presence.ClaimRequest, taken *presence.AddressError, begun time.Time) error {
	refused := &agora.Error{Code: agora.AgentExists, Message: fmt.Sprintf("address %q is another agent's", taken.Address), Cause: taken}
	o, is, err := d.cfg.Presence.Dials.Find(ctx, taken.Tenant, taken.By)
	switch {
	case err != nil:
		return agora.AsError(err)
	case !is || taken.Name == "" && o.Dial.Address != taken.Address: // its claim is under way, or its session is just over
		if time.Since(begun) > pendingTime || !pause.For(ctx, 20*time.Millisecond) {
			return refused
		}
		return nil
	case !guard.Addresses:
		return d.cfg.Presence.Dials.FreeAddress(ctx, presence.Claim{Tenant: o.Tenant, Agent: o.Agent}, o.Dial)
	case o.Tenant != req.Tenant || o.Principal != req.Principal || d.answers(ctx, o):
		return refused
	}
	d.cfg.Log.Info("session ended whose address another agent has now", "agent", o.Agent, "tenant", o.Tenant, "address", taken.Address, "by", req.Agent)
	if err := d.end(ctx, o, Evicted); err != nil && !errors.Is(err, presence.ErrDeposed) {
		return agora.AsError(err)
	}
	return nil
}

// loop ends the sessions of this edge whose address is another agent's, as it can be where presence has lost them,
// until the edge is closed.
func (d *dialled) loop() {
	for pause.For(d.cfg.Context, max(d.cfg.Lease/5, 50*time.Millisecond)) {
		contested, err := d.cfg.Presence.Dials.Contested(d.cfg.Context, d.cfg.Holder)
		for _, o := range contested {
			d.cfg.Log.Warn("session ended whose address is another agent's", "agent", o.Agent, "tenant", o.Tenant, "address", o.Dial.Address)
			if err := d.end(d.cfg.Context, o, Evicted); err != nil && !errors.Is(err, presence.ErrDeposed) {
				d.cfg.Log.Debug("session was not ended, which is tried again", "agent", o.Agent, "err", err)
			}
		}
		if err != nil && d.cfg.Context.Err() == nil {
			d.cfg.Log.Debug("addresses were not looked after", "err", err)
		}
	}
}

// answers reports whether an active session's connection gives a sign of life.
func (d *dialled) answers(ctx context.Context, o presence.Orphan) bool {
	if o.Phase != presence.Active {
		return false
	}
	alive, _ := probeIncumbent(ctx, d.cfg, presence.Past{Holder: o.Holder, Epoch: o.Epoch}, agora.ToAgent(o.Tenant, o.Agent))
	return alive
}

// end ends a dialled session permanently, by the edge that holds it where one does. ErrDeposed where it continues under
// another claim, or is over.
func (d *dialled) end(ctx context.Context, o presence.Orphan, why Ending) error {
	if o.Phase == presence.Active {
		// Where its edge does not answer, it finds its claim gone.
		_ = d.cfg.Peers.End(ctx, o.Holder, agora.ToAgent(o.Tenant, o.Agent), o.Epoch, why)
	}
	c := presence.Claim{Tenant: o.Tenant, Agent: o.Agent, Session: o.Session, Epoch: o.Epoch}
	ended := d.cfg.Presence.Sessions.End(ctx, c)
	if ended != nil && !errors.Is(ended, presence.ErrDeposed) {
		return ended
	}
	if err := d.reaper.reap(ctx, o.Tenant, o.Agent, false); err != nil {
		return err
	}
	return ended
}

// probeIncumbent asks for a sign of life of the connection that holds an id.
// An edge that does not answer is taken for dead: its lease still has to run out.
func probeIncumbent(ctx context.Context, cfg *Config, p presence.Past, at agora.Address) (alive, leaving bool) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Probe)
	defer cancel()
	alive, leaving, err := cfg.Peers.Probe(ctx, p.Holder, at, p.Epoch)
	return alive && err == nil, leaving && err == nil
}
