package approval

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/pause"
)

// follow keeps the replica as the book is, until Close.
func (a *Approvals) follow() {
	for a.ctx.Err() == nil {
		err := a.cfg.Book.Watch(a.ctx, broker.BookReader{Entry: a.entry, Gone: a.forget, Read: a.read})
		if a.ctx.Err() == nil {
			a.read(0, err)
			pause.For(a.ctx, time.Second)
		}
	}
}

// entry takes in what is read of the book.
func (a *Approvals) entry(e broker.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if e.Decides == 0 {
		_, err = a.open(&e, false)
	} else if n := a.find(e.Tenant, e.Name); n != nil {
		err = a.decided(n, &e)
	}
	if err != nil {
		a.cfg.Log.Warn("approval skipped", "seq", e.Seq, "err", err)
	}
}

// forget drops what the book has no more.
func (a *Approvals) forget(first uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.first = first
	k := 0
	for ; k < len(a.all) && a.all[k].opened.Seq < first; k++ {
		a.unlink(a.all[k])
	}
	if k == 0 {
		return
	}
	rest := make([]*entry, len(a.all)-k, len(a.all)-k+16) // so that what is forgotten can be freed
	copy(rest, a.all[k:])
	a.all = rest
}

// read notes how far the book was read.
func (a *Approvals) read(upTo uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed, a.upTo = nil, max(a.upTo, upTo); err != nil {
		a.failed = agora.AsError(err)
	}
	close(a.looked)
	a.looked = make(chan struct{})
}

// catchUp returns once the replica has what the book has now, or ctx is over.
func (a *Approvals) catchUp(ctx context.Context) error {
	last, err := a.cfg.Book.Last(ctx)
	if err != nil {
		return err
	}
	for {
		a.mu.RLock()
		upTo, looked := a.upTo, a.looked
		a.mu.RUnlock()
		if upTo >= last {
			return nil
		}
		select {
		case <-looked:
		case <-ctx.Done():
			return agora.AsError(ctx.Err())
		case <-a.ctx.Done():
			return errClosing
		}
	}
}

// refresh reads an approval by the word of the book's leader, and has the replica be so. nil where there is none.
func (a *Approvals) refresh(ctx context.Context, tenant, box string) (*entry, error) {
	a.mu.RLock()
	before := a.find(tenant, box)
	a.mu.RUnlock()
	opened, decision, err := a.cfg.Book.Get(ctx, tenant, box)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if opened == nil {
		if before != nil && !before.gone { // one that has come since then is another
			a.remove(before)
		}
		return nil, nil
	}
	n, err := a.open(opened, true)
	if err != nil {
		return nil, agora.AsError(err)
	}
	if decision != nil {
		if err := a.decided(n, decision); err != nil {
			return nil, agora.AsError(err)
		}
	}
	return n, nil
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
		next, ok := a.nextDue()
		if !ok {
			timer.Stop()
		} else {
			timer.Reset(min(longest, next.Sub(a.cfg.Now())))
		}
		select {
		case <-a.wake:
			continue
		case <-timer.C:
		case <-a.ctx.Done():
			return
		}
		a.expireDue()
	}
}

func (a *Approvals) nextDue() (time.Time, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if len(a.due) == 0 {
		return time.Time{}, false
	}
	return a.due[0].wakes, true
}

// expireDue has expire what is due, one after the other. The first that can't be stored ends it: all are tried again later.
func (a *Approvals) expireDue() {
	for a.ctx.Err() == nil {
		a.mu.Lock()
		now := a.cfg.Now()
		if len(a.due) == 0 || a.due[0].wakes.After(now) {
			a.mu.Unlock()
			return
		}
		n := a.due[0]
		n.wakes = now.Add(retryAfter + rand.N(retryAfter)) // it is decided before, or tried again
		heap.Fix(&a.due, 0)
		a.mu.Unlock()
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
