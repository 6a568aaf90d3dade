package ownership

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora/internal/guard"
)

// renewals keep the lease, and look after all that depends on it.
type renewals struct {
	cfg     *Config
	lease   *Lease
	claims  *claims
	rebuild *rebuild
	lost    *lostSessions

	restarts uint64 // of presence, as far as this edge has seen them
}

// renew writes the lease once, and looks after the claims where they may have
// changed hands. What counts is when it was sent: it may have lain on the way.
func (r *renewals) renew(ctx context.Context) error {
	now := renewal{sent: time.Now(), at: r.cfg.Broker.Now()}
	soon, cancel := context.WithTimeout(ctx, r.cfg.Lease/5)
	defer cancel()
	held, err := r.lease.acquire(soon)
	if err != nil {
		return err
	}
	first := r.lease.last.Load() == nil
	restarts := r.cfg.Presence.Leases.Restarts()
	if !held || restarts != r.restarts { // a server that was started may have read an older copy of what it had
		r.lease.lapsed.Store(true)
	}
	r.restarts = restarts
	told := !first && r.lease.lapsed.Load()
	if told {
		// Others may have claimed what this edge held, or presence has lost it.
		if err := r.claims.reassertAfterLapse(ctx); err != nil {
			return err
		}
	}
	if err := r.claims.tellLoss(soon); err != nil {
		return err
	}
	whole, unsearched, err := r.cfg.Presence.Standing(soon)
	if err != nil {
		return err
	}
	if !whole && (!guard.Whole || first) {
		whole, err = r.rebuild.beginWhole(ctx)
	}
	if err == nil {
		err = r.rebuild.follow(ctx, whole, !told)
	}
	if err != nil {
		return err
	}
	if !unsearched.IsZero() {
		r.lost.seek(unsearched)
	}
	r.lease.renewed(now)
	return r.claims.revalidate(ctx)
}

// loop renews the lease fifteen times in its length, more often while that fails, and at once when the
// log is there again. It ends when another edge has taken the id: the lease then runs out.
func (r *renewals) loop() {
	wait := r.lease.interval()
	for r.await(wait) {
		wait = r.lease.interval()
		err := r.renew(r.cfg.Context)
		if _, is := errors.AsType[*errRival](err); is {
			r.cfg.Log.Error("lease was lost", "err", err)
			r.cfg.Superseded(err)
			return
		}
		if err != nil && r.cfg.Context.Err() == nil {
			wait = r.cfg.Lease / 30
			r.lease.failed.Add(1)
			r.cfg.Log.Warn("lease was not renewed", "err", err)
		}
	}
}

// await waits until the next renewal is due; false when the edge is closed.
func (r *renewals) await(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.cfg.Broker.Reconnected():
		return true
	case <-r.cfg.Context.Done():
		return false
	}
}
