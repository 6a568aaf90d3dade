package presence

import (
	"context"
	"time"
)

// tidyBatch is how many of an edge's own claims one sweep looks at.
const tidyBatch = 100

// due looks at agents whose time has come and returns the sessions that are ending, and registrations that are over:
// those have no session.
func (s sweeper) due(ctx context.Context, max int) ([]Claim, error) {
	var out []Claim
	for len(out) < max {
		n := min(max-len(out), batch)
		r, err := s.run(ctx, indexTake(dueKey, 0, n, s.cfg.Lease))
		if err != nil {
			return out, err
		}
		now, es := r.due()
		claims, err := s.judge(ctx, now, es)
		out = append(out, claims...)
		if err != nil || len(es) < n {
			return out, err
		}
	}
	return out, nil
}

// judge runs the due script on entries and acts on what it says.
func (s sweeper) judge(ctx context.Context, now int64, es []entry) ([]Claim, error) {
	calls := make([]call, len(es))
	for i, e := range es {
		k := keysOf(e.member, "")
		calls[i] = call{dueScript, []string{k.rec, k.unsettled}, nil}
	}
	replies, err := s.runAll(ctx, calls)
	if err != nil {
		return nil, err
	}
	var out []Claim
	var after []call
	for i, r := range replies {
		tenant, id, ok := splitMember(es[i].member)
		switch state := r.at(0).str(); {
		case state == "ending" && ok:
			out = append(out, Claim{
				Agent: id, Tenant: tenant,
				Session: r.at(1).str(), Epoch: r.at(2).uint(), Unsettled: r.at(3).pasts(),
			})
		case state == "lapsed" && ok:
			out = append(out, Claim{Agent: id, Tenant: tenant, Epoch: r.at(1).uint()})
		case state == "grace" || state == "registered":
			after = append(after, indexAdd(dueKey, time.Duration(r.at(1).int()-now)*time.Millisecond, es[i].member))
		case state == "none" && ok:
			after = append(after, indexDel(agentsKey(tenant), s.settled, entry{member: es[i].member}))
			fallthrough
		default:
			after = append(after, indexDel(dueKey, anyAge, es[i]))
		}
	}
	_, err = s.runAll(ctx, after)
	return out, err
}

// tidy goes through the claims that are listed under this edge, oldest first, a few each time: it drops those that are
// no longer its own, and lets go of those that the edge knows nothing of.
func (s sweeper) tidy(ctx context.Context, h Holder) error {
	r, err := s.run(ctx, indexTake(claimsKey(h), s.settled, tidyBatch, 0))
	if err != nil {
		return err
	}
	now, es := r.due()
	if len(es) == 0 {
		return nil
	}
	epochs, err := s.epochs(ctx, h, es)
	if err != nil {
		return err
	}
	var strays []entry
	var stale []entry
	for i, e := range es {
		tenant, id, ok := splitMember(e.member)
		switch {
		case !ok || epochs[i] == 0:
			stale = append(stale, e)
		case s.cfg.Held != nil && int64(epochs[i]/1000) < now-s.settled.Milliseconds() && !s.cfg.Held(tenant, id, epochs[i]):
			strays = append(strays, e)
		}
	}
	if len(stale) > 0 {
		if _, err := s.run(ctx, indexDel(claimsKey(h), anyAge, stale...)); err != nil {
			return err
		}
	}
	if len(strays) == 0 {
		return nil
	}
	s.log.Info("claims let go that this edge does not hold", "claims", len(strays))
	_, err = s.orphan(ctx, h, strays, 0, now)
	return err
}
