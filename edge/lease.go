package edge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
)

// beatsPerLease is how many renewals go into a lease. An edge that leaves out two, and under whose name
// nobody answers, is known to be gone: so its agents are back long before its lease is over.
const beatsPerLease = 15

// longestBeat is the longest time between two renewals, however long the lease: what an edge stores a minute after its last one is
// taken for a dead edge's, and nobody reads it.
const longestBeat = 10 * time.Second

// renewalInterval is the time between two renewals.
func (n *Node) renewalInterval() time.Duration { return min(n.cfg.Lease/beatsPerLease, longestBeat) }

// valid returns when the lease was last renewed, and whether it still holds.
// The monotonic clock decides: an edge that was frozen knows at once that it
// may have been given up, and neither publishes nor delivers before it knows better.
func (n *Node) valid() (time.Time, bool) {
	r := n.lastRenewal.Load()
	if r == nil {
		return time.Time{}, false
	}
	return r.at, !guard.Leases || time.Since(r.sent) < n.cfg.Lease
}

// renewal is one that succeeded.
type renewal struct {
	sent time.Time // when it was sent, by the monotonic clock
	at   time.Time // the same by the log's clock
}

// renew writes the lease once, and looks after the claims where they may have
// changed hands. What counts is when it was sent: it may have lain on the way.
func (n *Node) renew(ctx context.Context) error {
	r := renewal{sent: time.Now(), at: n.cfg.Broker.Now()}
	soon, cancel := context.WithTimeout(ctx, n.cfg.Lease/5)
	defer cancel()
	held, err := n.acquireLease(soon)
	if err != nil {
		return err
	}
	first := n.lastRenewal.Load() == nil
	if !held && !first {
		// Others may have claimed what this edge held, or presence has lost it.
		if err := n.reassertAll(ctx); err != nil {
			return err
		}
	}
	whole, unsearched, err := n.cfg.Presence.Standing(soon)
	if err != nil {
		return err
	}
	if !whole && (!guard.Whole || first) {
		whole, err = n.beginWhole(ctx)
	}
	if err == nil {
		err = n.rebuildPresence(ctx, whole, held || first)
	}
	if err != nil {
		return err
	}
	if !unsearched.IsZero() {
		n.seekLostSessions(unsearched)
	}
	n.lastRenewal.Store(&r)
	n.renewals.Observe(time.Since(r.sent))
	return n.revalidateClaims(ctx)
}

// errRival says that another edge that lives has the same id. It goes away for nothing that this one could do.
type errRival struct{ id string }

func (e *errRival) Error() string {
	return fmt.Sprintf("another edge runs under the id %q: give each edge an id of its own, or none (--id)", e.id)
}

// acquireLease writes the lease. Where another life of the edge has it, that is left alone until it is known to be gone; while it
// answers, the error is an errRival.
func (n *Node) acquireLease(ctx context.Context) (held bool, err error) {
	held, err = n.cfg.Presence.Leases.Renew(ctx, n.holder, "")
	taken, ok := errors.AsType[*presence.TakenError](err)
	if !ok {
		n.rivalAbsence = absence{}
		return held, err
	}
	_, askErr := n.cfg.Broker.Ask(ctx, answerName(taken.By), []byte(`{}`))
	if askErr == nil {
		return false, &errRival{n.cfg.ID}
	}
	nobody := n.rivalAbsence.record(askErr)
	age, alive, ageErr := n.cfg.Presence.Leases.Age(ctx, taken.By)
	if ageErr != nil || alive && !(nobody && age >= 2*n.renewalInterval()) {
		return false, err
	}
	return n.cfg.Presence.Leases.Renew(ctx, n.holder, taken.By.Incarnation)
}

// renewLoop renews the lease fifteen times in its length, more often while that fails, and at once when the
// log is there again. It ends when another edge has taken the id: the lease then runs out.
func (n *Node) renewLoop() {
	wait := n.renewalInterval()
	for n.awaitRenewal(wait) {
		wait = n.renewalInterval()
		err := n.renew(n.ctx)
		if _, is := errors.AsType[*errRival](err); is {
			n.cfg.Log.Error("lease was lost", "err", err)
			n.cfg.Superseded(err)
			return
		}
		if err != nil && n.ctx.Err() == nil {
			wait = n.cfg.Lease / 30
			n.stats.unrenewed.Add(1)
			n.cfg.Log.Warn("lease was not renewed", "err", err)
		}
	}
}

// awaitRenewal waits until the next renewal is due; false when the node is closed.
func (n *Node) awaitRenewal(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-n.cfg.Broker.Reconnected():
		return true
	case <-n.ctx.Done():
		return false
	}
}

// writeBehindLoop writes what need not be written at once: every second, positions
// with the third part of a lease. Losing one means repeating what was written since, marked.
func (n *Node) writeBehindLoop() {
	var flushed time.Time
	for pause.For(n.ctx, time.Second) {
		if now := time.Now(); now.Sub(flushed) >= n.cfg.Lease/3 {
			flushed = now
			n.flushPositions(n.ctx)
		}
		n.relay.Tick(n.ctx)
		n.calls.Tick(n.ctx)
		n.detachLate()
	}
}

// flushPositions writes the positions of the sessions that moved, all in one batch.
func (n *Node) flushPositions(ctx context.Context) {
	moved := n.sessions.takeMoved()
	var batch []presence.Moved
	for s := range moved {
		batch = append(batch, s.positionChanges())
	}
	if len(batch) == 0 {
		return
	}
	if err := n.cfg.Presence.Positions.Write(ctx, batch); err != nil {
		// Losing a position means repeating, never skipping: the next move writes it.
		n.cfg.Log.Warn("positions were not written", "err", err)
		for s := range moved {
			s.forgetPersisted()
			s.markMoved()
		}
	}
}
