package web

import (
	"context"
	"time"
)

// watchEvery is how often it is looked whether those whose answers last may go on.
const watchEvery = time.Second

// watch ends answers that last once the credentials of who asked are not good any more, until ctx is over.
func (k *Kit) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if k.stats.Lasting.Load() == 0 {
			continue
		}
		for _, x := range k.lasting() {
			if err := k.node.check(x.Actor); err != nil {
				x.End(err)
			}
		}
	}
}

// lasting returns the requests whose answers last.
func (k *Kit) lasting() (all []*Exchange) {
	for _, x := range k.exchanges() {
		x.mu.Lock()
		if x.lasting {
			all = append(all, x)
		}
		x.mu.Unlock()
	}
	return all
}

const (
	drainEvery = 100 * time.Millisecond // between two groups of answers that are asked to end
	endTime    = 2 * time.Second        // kept, or a quarter of the time there is, for telling those that did not
)

// Drain has the answers that last come to an end, so many a second, and returns when every request has been answered or ctx is over.
// What can't be made again elsewhere goes on until shortly before; then it is told that the edge goes away. Nobody new comes: the node has seen to that.
func (k *Kit) Drain(ctx context.Context) {
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		late := time.AfterFunc(left-min(endTime, left/4), func() {
			for _, x := range k.exchanges() {
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
		for _, x := range k.lasting() {
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
