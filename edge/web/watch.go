package web

import (
	"context"
	"slices"
	"time"
)

// watchEvery is how often it is looked whether those whose answers last may go on.
const watchEvery = time.Second

// watch ends answers that last once the credentials of who asked are not good any more, until ctx is over.
func (k *Kit) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var all []*Exchange
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if k.stats.Lasting.Load() == 0 {
			all = nil
			continue
		}
		all = k.lasting(all)
		for _, x := range all {
			if err := k.node.check(x.Actor); err != nil {
				x.End(err)
			}
		}
		clear(all) // which may end meanwhile
	}
}

// lasting returns the requests whose answers last, in room that nobody else uses.
func (k *Kit) lasting(room []*Exchange) []*Exchange {
	return slices.DeleteFunc(k.exchanges(room), func(x *Exchange) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return !x.lasting
	})
}

const (
	drainEvery = 100 * time.Millisecond // between two groups of answers that are asked to end
	endTime    = 2 * time.Second        // kept, or a quarter of the time there is, for telling those that did not
)

// Drain has the answers that last come to an end, so many a second, and returns when every request has been answered or
// ctx is over. What can't be made again elsewhere continues until shortly before; then it learns that the edge goes
// away. Nobody new comes: the node has seen to that.
func (k *Kit) Drain(ctx context.Context) {
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		late := time.AfterFunc(left-min(endTime, left/4), func() {
			for _, x := range k.exchanges(nil) {
				x.End(errGone)
			}
		})
		defer late.Stop()
	}
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	told, group := map[*Exchange]bool{}, max(1, k.cfg.DrainRate*int(drainEvery)/int(time.Second))
	for {
		n := 0
		for _, x := range k.lasting(nil) {
			if n == group {
				break
			}
			if !told[x] {
				told[x] = true
				x.drain.Do(func() { close(x.draining) })
				n++
			}
		}
		if k.stats.Open.Load() == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
