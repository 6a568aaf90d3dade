package ownership

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// ErrDraining is what newcomers are told by an edge that goes away.
var ErrDraining = &agora.Error{Code: agora.Unavailable, Message: "the edge is going away", RetryAfter: time.Second}

// handovers finds out whether past holders are done with agents.
type handovers struct {
	cfg    *Config
	lease  *Lease
	checks *livenessChecks
}

// await waits until every past holder of a claim has handed over, its lease
// is over, or it is known to be gone. It returns presence's error or ctx's.
func (d *handovers) await(ctx context.Context, c presence.Claim) error {
	left := c.Unsettled
	unheard := map[presence.Holder]*absence{}
	for len(left) > 0 {
		var next []presence.Past
		for _, p := range left {
			s := unheard[p.Holder]
			if s == nil {
				s = new(absence)
				unheard[p.Holder] = s
			}
			gone, clean := d.handedOver(ctx, c, p, s)
			if !gone {
				next = append(next, p)
				continue
			}
			if _, err := d.cfg.Presence.Sessions.Settle(ctx, c, p, clean); err != nil {
				return err
			}
		}
		switch left = next; {
		case len(left) == 0:
		case ctx.Err() != nil:
			return ctx.Err()
		case d.cfg.Context.Err() != nil:
			return ErrDraining
		}
	}
	return nil
}

// handedOver reports whether a past holder is done with an agent, and how; where it is not, it takes a moment. One that
// does not answer is gone when its lease is over, and before that when two
// things come together: no server of the log knows anybody under its name, and it has left out
// two renewals. An edge that is only cut off from the log continues renewing, and one that is only
// frozen keeps its name. Should one be cut off from both and live, its agents get nothing from
// it until it has looked after its claims (see claims.mayDeliver). All of this is seen after the claim was made.
func (d *handovers) handedOver(ctx context.Context, c presence.Claim, p presence.Past, s *absence) (gone, clean bool) {
	if !guard.Settling {
		return true, true
	}
	if s.times == 0 && !d.checks.absent(p.Holder) { // else there is nobody to hand over
		done, clean, err := d.ask(ctx, c, p.Holder)
		if err == nil && done {
			return true, clean
		}
		s.record(err)
	}
	seen, ok := d.checks.check(ctx, p.Holder)
	if !ok {
		return false, false
	}
	nobody := s.record(seen.asked)
	if seen.age < d.lease.interval() { // it may have handed over unasked, and then presence knows how that went
		if is, err := d.cfg.Presence.Sessions.Unsettled(ctx, c, p); err == nil && !is {
			return true, true
		}
	}
	return seen.err == nil && (!seen.alive || guard.Gone && nobody && seen.age >= 2*d.lease.interval()), false
}

// ask asks a past holder to hand over, for as long as it may answer.
func (d *handovers) ask(ctx context.Context, c presence.Claim, h presence.Holder) (done, clean bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.untilLapsed(ctx, h))
	defer cancel()
	late := time.AfterFunc(AskAgain, func() {
		d.cfg.Go(func() { d.untilAbsent(ctx, h, cancel) })
	})
	defer late.Stop()
	return d.cfg.Peers.HandOver(ctx, h, agora.ToAgent(c.Tenant, c.Agent), c.Epoch)
}

// untilAbsent gives up a question to a holder once nobody is there under its name: it ended as it was asked, and costs
// no more than one that had ended before. It returns when the question is over.
func (d *handovers) untilAbsent(asking context.Context, h presence.Holder, giveUp func()) {
	for {
		seen, ok := d.checks.check(asking, h)
		switch {
		case !ok:
			return
		case errors.Is(seen.asked, broker.ErrNoEdge):
			giveUp()
			return
		}
	}
}

// untilLapsed returns how long to wait for an answer of a holder: one that is frozen costs no more than what is
// left of its lease.
func (d *handovers) untilLapsed(ctx context.Context, h presence.Holder) time.Duration {
	age, alive, err := d.cfg.Presence.Leases.Age(ctx, h)
	switch {
	case err != nil:
		return HandoverTime + time.Second
	case !alive:
		return answerTime
	}
	return max(d.cfg.Lease-age, d.lease.interval())
}

// isGone looks once whether a holder is known to be gone that has left out renewals: see handedOver.
func (d *handovers) isGone(ctx context.Context, h presence.Holder, s *absence) bool {
	seen, ok := d.checks.check(ctx, h)
	if !ok || seen.err != nil {
		return false
	}
	nobody := s.record(seen.asked)
	return !seen.alive || guard.Gone && nobody && seen.age >= 2*d.lease.interval()
}

// hasLost reports whether nobody is there who holds an active session.
func (d *handovers) hasLost(ctx context.Context, o presence.Orphan) bool {
	if o.Holder == d.cfg.Holder {
		return false
	}
	var s absence
	for {
		seen, ok := d.checks.check(ctx, o.Holder)
		switch {
		case !ok || seen.err != nil:
			return false
		case !seen.alive || s.record(seen.asked):
			return true // should it live, it hands over: see await
		case s.times == 0:
			return false
		}
	}
}

// handOver closes sessions that this edge still holds, for another holder.
func handOver(ctx context.Context, sessions []Session) (done, clean bool) {
	ctx, cancel := context.WithTimeout(ctx, HandoverTime)
	defer cancel()
	clean = true
	for _, s := range sessions {
		ok, err := s.HandOver(ctx)
		if err != nil {
			return false, false
		}
		clean = clean && ok
	}
	return true, clean
}
