package ownership

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora/internal/guard"
)

// renew writes the lease once, and looks after the claims where they may have
// changed hands. What counts is when it was sent: it may have lain on the way.
func (o *Owner) renew(ctx context.Context) error {
	r := renewal{sent: time.Now(), at: o.cfg.Broker.Now()}
	soon, cancel := context.WithTimeout(ctx, o.cfg.Lease/5)
	defer cancel()
	held, err := o.lease.acquire(soon)
	if err != nil {
		return err
	}
	first := o.lease.last.Load() == nil
	if !held && !first {
		// Others may have claimed what this edge held, or presence has lost it.
		if err := o.claims.reassertAll(ctx); err != nil {
			return err
		}
	}
	whole, unsearched, err := o.cfg.Presence.Standing(soon)
	if err != nil {
		return err
	}
	if !whole && (!guard.Whole || first) {
		whole, err = o.rebuild.beginWhole(ctx)
	}
	if err == nil {
		err = o.rebuild.follow(ctx, whole, held || first)
	}
	if err != nil {
		return err
	}
	if !unsearched.IsZero() {
		o.lost.seek(unsearched)
	}
	o.lease.renewed(r)
	return o.claims.revalidate(ctx)
}

// renewLoop renews the lease fifteen times in its length, more often while that fails, and at once when the
// log is there again. It ends when another edge has taken the id: the lease then runs out.
func (o *Owner) renewLoop() {
	wait := o.lease.interval()
	for o.awaitRenewal(wait) {
		wait = o.lease.interval()
		err := o.renew(o.cfg.Context)
		if _, is := errors.AsType[*errRival](err); is {
			o.cfg.Log.Error("lease was lost", "err", err)
			o.cfg.Superseded(err)
			return
		}
		if err != nil && o.cfg.Context.Err() == nil {
			wait = o.cfg.Lease / 30
			o.lease.failed.Add(1)
			o.cfg.Log.Warn("lease was not renewed", "err", err)
		}
	}
}

// awaitRenewal waits until the next renewal is due; false when the node is closed.
func (o *Owner) awaitRenewal(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-o.cfg.Broker.Reconnected():
		return true
	case <-o.cfg.Context.Done():
		return false
	}
}
