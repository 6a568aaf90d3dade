package edge

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// awaitHandover waits until every past holder of a claim has handed over, its lease
// is over, or it is known to be gone. It returns presence's error or ctx's.
func (n *Node) awaitHandover(ctx context.Context, c presence.Claim) error {
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
			gone, clean := n.handedOver(ctx, c, p, s)
			if !gone {
				next = append(next, p)
				continue
			}
			if _, err := n.cfg.Presence.Sessions.Settle(ctx, c, p, clean); err != nil {
				return err
			}
		}
		switch left = next; {
		case len(left) == 0:
		case ctx.Err() != nil:
			return ctx.Err()
		case n.ctx.Err() != nil:
			return errDraining
		}
	}
	return nil
}

// absence is how often, and since when, nobody was there under a name.
type absence struct {
	times int
	since time.Time
}

const (
	askAgain  = 100 * time.Millisecond // between two questions to a past holder
	absentFor = 300 * time.Millisecond // for so long nobody must be there: interest spreads asynchronously between servers
)

// record takes the outcome of a question, and tells whether nobody has been there for long enough.
func (s *absence) record(err error) bool {
	if !errors.Is(err, broker.ErrNoEdge) {
		*s = absence{}
		return false
	}
	if s.times++; s.times == 1 {
		s.since = time.Now()
	}
	return s.times >= 3 && time.Since(s.since) >= absentFor
}

// handedOver tells whether a past holder is done with an agent, and how; where it is not, it takes a moment. One that
// does not answer is gone when its lease is over, and before that when two
// things come together: no server of the log knows anybody under its name, and it has left out
// two renewals. An edge that is only cut off from the log goes on renewing, and one that is only
// frozen keeps its name. Should one be cut off from both and live, its agents get nothing from
// it until it has looked after its claims (see Node.mayDeliver). All of this is seen after the claim was made.
func (n *Node) handedOver(ctx context.Context, c presence.Claim, p presence.Past, s *absence) (gone, clean bool) {
	if !guard.Settling {
		return true, true
	}
	if s.times == 0 && !n.checks.absent(p.Holder) { // else there is nobody to hand over
		asking, cancel := context.WithTimeout(ctx, n.untilLapsed(ctx, p.Holder))
		r, err := n.ask(asking, p.Holder, question{Verb: "handover", Tenant: c.Tenant, Agent: c.Agent, Epoch: c.Epoch})
		cancel()
		if err == nil && r.Done {
			return true, r.Clean
		}
		s.record(err)
	}
	seen, ok := n.checkLiveness(ctx, p.Holder)
	if !ok {
		return false, false
	}
	nobody := s.record(seen.asked)
	if seen.age < n.renewalInterval() { // it may have handed over unasked, and then presence knows how that went
		if is, err := n.cfg.Presence.Sessions.Unsettled(ctx, c, p); err == nil && !is {
			return true, true
		}
	}
	return seen.err == nil && (!seen.alive || guard.Gone && nobody && seen.age >= 2*n.renewalInterval()), false
}

// untilLapsed returns how long to wait for an answer of a holder: one that is frozen costs no more than what is
// left of its lease.
func (n *Node) untilLapsed(ctx context.Context, h presence.Holder) time.Duration {
	age, alive, err := n.cfg.Presence.Leases.Age(ctx, h)
	switch {
	case err != nil:
		return handoverTime + time.Second
	case !alive:
		return answerTime
	}
	return max(n.cfg.Lease-age, n.renewalInterval())
}
