package ownership

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// witnessesName is the name under which every edge answers that has known presence whole.
const witnessesName = "elders" // no edge's own name: those have a dot

// rebuild is how an edge has presence be whole again that has lost everything.
type rebuild struct {
	cfg    *Config
	claims *claims

	lostSince   time.Time // when presence was found not to be whole; the renewals' own, as is the next
	gathering   string    // under which this edge has told all it holds
	stopWitness func()    // stops answering as a witness; nil where it is none
}

// follow follows whether presence is whole. Where it is not, it has lost everything: every edge finds so with its next
// renewal and tells it again of what it holds. When a lease is over since this edge found out, all that live have done
// so, and it is whole again. Where presence loses everything once more meanwhile, all that begins again: what was told
// is gone, too. An edge finds so where its lease was gone, or the gathering under which it has told. untold says that
// this edge has not just told all it holds. The loop of renewals alone calls it.
func (r *rebuild) follow(ctx context.Context, whole, untold bool) error {
	if whole {
		r.lostSince, r.gathering = time.Time{}, ""
		return r.answerAsWitness()
	}
	found := time.Now()
	g, err := r.cfg.Presence.Gather(ctx)
	if err != nil {
		return err
	}
	if g.ID != r.gathering || !untold {
		if untold {
			if err := r.claims.reassertAll(ctx); err != nil {
				return err
			}
		}
		r.cfg.Log.Warn("presence has lost what it knew, and is told again", "edge", r.cfg.Holder.Edge)
		r.lostSince, r.gathering = found, g.ID
		r.cfg.Directory.Doubt()
		return nil
	}
	if min(g.Age, time.Since(r.lostSince)) < r.cfg.Lease {
		return nil
	}
	return r.cfg.Presence.Gathered(ctx, g)
}

// answerAsWitness has the edge answer those that want to know whether they are the first.
func (r *rebuild) answerAsWitness() error {
	if r.stopWitness != nil {
		return nil
	}
	retire, err := r.cfg.Broker.Answer(witnessesName, func(context.Context, []byte) []byte { return []byte("1") })
	if err == nil {
		r.stopWitness = retire
	}
	return err
}

// close stops answering as a witness.
func (r *rebuild) close() {
	if r.stopWitness != nil {
		r.stopWitness()
	}
}

// beginWhole says that presence is whole where this edge is the first of its cluster, and returns whether it is:
// an edge that began at the same moment may have said so since it was asked.
func (r *rebuild) beginWhole(ctx context.Context) (whole bool, err error) {
	if !guard.Whole || r.isFirstEdge(ctx) {
		return true, r.cfg.Presence.SetWhole(ctx)
	}
	return r.cfg.Presence.Whole(ctx)
}

// isFirstEdge reports whether no other edge answers that has known presence whole: then nobody holds anything that
// could be told again, as in a cluster that is new. Interest spreads asynchronously between servers, so it asks more
// than once. One that was asked and does not answer in time, as it is frozen, is there nevertheless.
func (r *rebuild) isFirstEdge(ctx context.Context) bool {
	for range 3 {
		soon, cancel := context.WithTimeout(ctx, r.cfg.Lease/5)
		_, err := r.cfg.Broker.Ask(soon, witnessesName, nil)
		cancel()
		if !errors.Is(err, broker.ErrNoEdge) || !pause.For(ctx, AskAgain) {
			return false
		}
	}
	return true
}

// awaitsRebuild reports whether a claim failed as presence is not whole, and waits a moment then.
func awaitsRebuild(ctx context.Context, err error) bool {
	return errors.Is(err, presence.ErrIncomplete) && pause.For(ctx, AskAgain)
}
