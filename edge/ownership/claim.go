package ownership

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// claimer takes ids for newcomers.
type claimer struct {
	cfg      *Config
	reaper   *reaper
	dialled  *dialled
	arrivals arrivals
}

// claim takes the id, past a dead incumbent and a session that is just ending.
func (k *claimer) claim(ctx context.Context, req *presence.ClaimRequest, a *Arrival) (presence.Claim, error) {
	begun := time.Now()
	for {
		a.claimSent()
		claim, err := k.cfg.Presence.Sessions.Claim(ctx, *req)
		a.claimAnswered(claim, err)
		taken, _ := errors.AsType[*presence.AddressError](err)
		switch {
		case req.Adopt != 0 && (errors.Is(err, presence.ErrDeposed) || errors.Is(err, presence.ErrExists)):
			return claim, ErrAdopted
		case taken != nil:
			if err := k.dialled.contestAddress(ctx, req, taken, begun); err != nil {
				return claim, err
			}
		case errors.Is(err, presence.ErrExists):
			if err := k.contestIncumbent(ctx, req, claim); err != nil {
				return claim, err
			}
		case errors.Is(err, presence.ErrEnding):
			if err := k.reaper.reap(ctx, req.Tenant, req.Agent, false); err != nil {
				return claim, agora.AsError(err)
			}
		case errors.Is(err, presence.ErrOwned):
			return claim, BelongsElsewhere(req.Agent)
		case errors.Is(err, presence.ErrWrongToken):
			return claim, agora.Errorf(agora.InvalidRequest, "resume_token is not that of the session, which goes on for who registers without one")
		case time.Since(begun) < 2*k.cfg.Lease && awaitsRebuild(ctx, err): // the one who holds the id will have told so by then
		case err != nil:
			return claim, agora.AsError(err)
		default:
			return claim, nil
		}
		if err := ctx.Err(); err != nil {
			return claim, agora.AsError(err)
		}
	}
}

// contestIncumbent decides what the incumbent of an id means for a newcomer: nil is
// that it may claim again.
func (k *claimer) contestIncumbent(ctx context.Context, req *presence.ClaimRequest, claim presence.Claim) error {
	alive, leaving := probeIncumbent(ctx, k.cfg, *claim.Incumbent, agora.ToAgent(req.Tenant, req.Agent))
	switch {
	case alive:
		return agora.Errorf(agora.AgentExists, "agent %q is connected elsewhere", req.Agent)
	case leaving: // a session that was said goodbye to does not go on
		pause.For(ctx, 20*time.Millisecond)
	case req.Evict == claim.Incumbent.Epoch:
		return BelongsElsewhere(req.Agent)
	default:
		req.Evict = claim.Incumbent.Epoch
	}
	return nil
}

// probed reports whether the connection that holds an epoch here gives a sign of life in time.
func (k *claimer) probed(ctx context.Context, at agora.Address, epoch uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, k.cfg.Probe*9/10) // the rest is for the answer
	defer cancel()
	for k.arrivals.mayHold(at, epoch) {
		if !pause.For(ctx, 10*time.Millisecond) {
			return true // it has come just now
		}
	}
	s := under(k.cfg.Sessions, at, epoch)
	return s != nil && s.Probe(ctx)
}

// under returns the session of an agent under an epoch; nil for none.
func under(all Sessions, at agora.Address, epoch uint64) Session {
	for _, s := range all.Of(at, epoch+1) {
		if s.Claim().Epoch == epoch {
			return s
		}
	}
	return nil
}

// giveBack lets go of a claim that nobody waits for any more: it stays in its grace.
func (k *claimer) giveBack(c presence.Claim) {
	k.cfg.Go(func() {
		ctx, cancel := context.WithTimeout(k.cfg.Context, k.cfg.Lease)
		defer cancel()
		// The sweep does the same should this fail.
		if err := k.cfg.Presence.Sessions.Return(ctx, c); err != nil {
			k.cfg.Log.Debug("claim was not given back", "agent", c.Agent, "err", err)
		}
	})
}
