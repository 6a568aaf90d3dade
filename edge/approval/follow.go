package approval

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/pause"
)

// follow keeps the replica as the book is, until Close.
func (a *Approvals) follow() {
	for a.ctx.Err() == nil {
		err := a.cfg.Book.Watch(a.ctx, broker.BookReader{Entry: a.replica.entry, Gone: a.replica.forget, Read: a.replica.read})
		if a.ctx.Err() == nil {
			a.replica.read(0, err)
			pause.For(a.ctx, time.Second)
		}
	}
}

// CatchUp blocks until the replica has what the book has now: what was asked and decided before, at whatever edge.
// UNAVAILABLE where the book can't be read, the edge closes, or ctx is over.
func (a *Approvals) CatchUp(ctx context.Context) error {
	last, err := a.cfg.Book.Last(ctx)
	if err != nil {
		return err
	}
	for {
		upTo, looked := a.replica.progress()
		if upTo >= last {
			return nil
		}
		select {
		case <-looked:
			if err := a.Synced(); err != nil {
				return err
			}
		case <-ctx.Done():
			return agora.AsError(ctx.Err())
		case <-a.ctx.Done():
			return errClosing
		}
	}
}

// refresh reads an approval by the word of the book's leader, and has the replica be so. nil where there is none.
func (a *Approvals) refresh(ctx context.Context, tenant, box string) (*entry, error) {
	before := a.replica.find(tenant, box)
	opened, decision, err := a.cfg.Book.Get(ctx, tenant, box)
	if err != nil {
		return nil, err
	}
	if opened != nil {
		return a.replica.refreshed(opened, decision)
	}
	if before != nil { // one that has come since then is another
		a.replica.absent(before)
	}
	return nil, nil
}

// entryOf returns an approval, from the book where the replica has none; nil where that has none either.
func (a *Approvals) entryOf(ctx context.Context, tenant, box string) (*entry, error) {
	if n := a.replica.find(tenant, box); n != nil {
		return n, nil
	}
	return a.refresh(ctx, tenant, box)
}

const (
	writeTime  = 5 * time.Second // for storing one expiry
	retryAfter = time.Second     // after one that failed
	longest    = time.Minute     // between two looks at what is due: the log's clock may be set
)

// expire has what nobody has decided in time be decided, until Close.
func (a *Approvals) expire() {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	for {
		next, ok := a.replica.nextDue()
		if !ok {
			timer.Stop()
		} else {
			timer.Reset(min(longest, next.Sub(a.cfg.Now())))
		}
		select {
		case <-a.replica.deadlines.sooner:
			continue
		case <-timer.C:
		case <-a.ctx.Done():
			return
		}
		a.expireDue()
	}
}

// expireDue has expire what is due, one after the other. The first that can't be stored ends it: all are tried again
// later.
func (a *Approvals) expireDue() {
	for a.ctx.Err() == nil {
		n := a.replica.due(a.cfg.Now())
		if n == nil {
			return
		}
		ctx, cancel := context.WithTimeout(a.ctx, writeTime)
		_, err := a.store(ctx, n, saysExpired, &Verdict{By: string(agora.Cluster)})
		cancel()
		if err != nil && a.ctx.Err() == nil {
			a.cfg.Log.Debug("an approval could not be decided", "err", err)
			pause.For(a.ctx, retryAfter)
			return
		}
	}
}
