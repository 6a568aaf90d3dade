package edge

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

// rebuildPresence follows whether presence is whole. Where it is not, it has lost
// everything: every edge finds so with its next renewal and tells it again of
// what it holds. When a lease is over since this edge found out, all that live have done so, and
// it is whole again. untold says that this edge has not just told all it holds. The loop of renewals alone calls it.
func (n *Node) rebuildPresence(ctx context.Context, whole, untold bool) error {
	switch {
	case whole:
		n.lostSince = time.Time{}
		return n.answerAsWitness()
	case n.lostSince.IsZero():
		found := time.Now()
		if untold {
			if err := n.reassertAll(ctx); err != nil {
				return err
			}
		}
		n.cfg.Log.Warn("presence has lost what it knew, and is told again", "edge", n.cfg.ID)
		n.lostSince = found
		n.directory.Doubt()
	case time.Since(n.lostSince) >= n.cfg.Lease:
		return n.cfg.Presence.SetWhole(ctx)
	}
	return nil
}

// answerAsWitness has the edge answer those that want to know whether they are the first.
func (n *Node) answerAsWitness() error {
	if n.stopWitness != nil {
		return nil
	}
	retire, err := n.cfg.Broker.Answer(witnessesName, func(context.Context, []byte) []byte { return []byte("1") })
	if err == nil {
		n.stopWitness = retire
	}
	return err
}

// beginWhole says that presence is whole where this edge is the first of its cluster, and returns whether it is:
// an edge that began at the same moment may have said so since it was asked.
func (n *Node) beginWhole(ctx context.Context) (whole bool, err error) {
	if !guard.Whole || n.isFirstEdge(ctx) {
		return true, n.cfg.Presence.SetWhole(ctx)
	}
	return n.cfg.Presence.Whole(ctx)
}

// isFirstEdge tells whether no other edge answers that has known presence whole: then nobody holds anything that could
// be told again, as in a cluster that is new. Interest spreads asynchronously between servers, so it asks more than once.
// One that was asked and does not answer in time, as it is frozen, is there all the same.
func (n *Node) isFirstEdge(ctx context.Context) bool {
	for range 3 {
		soon, cancel := context.WithTimeout(ctx, n.cfg.Lease/5)
		_, err := n.cfg.Broker.Ask(soon, witnessesName, nil)
		cancel()
		if !errors.Is(err, broker.ErrNoEdge) || !pause.For(ctx, askAgain) {
			return false
		}
	}
	return true
}

// awaitsRebuild tells whether a claim failed as presence is not whole, and waits a moment then.
func awaitsRebuild(ctx context.Context, err error) bool {
	return errors.Is(err, presence.ErrIncomplete) && pause.For(ctx, askAgain)
}
