package edge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Load is how many agents an edge has.
type Load struct {
	Holder presence.Holder
	Agents int
}

// Mean returns how many agents each edge would have if all had as many, rounded up.
func Mean(loads []Load) int {
	total := 0
	for _, l := range loads {
		total += l.Agents
	}
	n := max(len(loads), 1)
	return (total + n - 1) / n
}

// Loads asks all edges of the cluster, this one among them, how many agents they have, sorted by id. UNAVAILABLE unless
// each of them that lives answers, can serve and does not drain: then agents are not to be moved. It waits for a second
// at most.
func (b *Balancer) Loads(ctx context.Context) ([]Load, error) {
	n := b.node
	holders, err := n.cfg.Presence.Leases.Edges(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex // guards loads and failed
	var loads []Load
	var failed []error
	for _, h := range holders {
		all.Go(func() {
			l, alive, err := b.load(ctx, h)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
			} else if alive {
				loads = append(loads, l)
			}
		})
	}
	all.Wait()
	slices.SortFunc(loads, func(x, y Load) int { return cmp.Compare(x.Holder.Edge, y.Holder.Edge) })
	if len(failed) > 0 {
		return nil, &agora.Error{Code: agora.Unavailable, Message: failed[0].Error(), RetryAfter: answerTime, Cause: errors.Join(failed...)}
	}
	return loads, nil
}

// load asks one edge. alive is false where it has ended.
func (b *Balancer) load(ctx context.Context, h presence.Holder) (l Load, alive bool, err error) {
	status, err := b.node.Inquiries().Edge(ctx, h)
	if err != nil || status == nil {
		alive, failed := b.node.cfg.Presence.Leases.Alive(context.WithoutCancel(ctx), h)
		if failed == nil && !alive {
			return Load{}, false, nil
		}
		return Load{}, false, agora.Errorf(agora.Unavailable, "%s does not answer", h.Edge)
	}
	if status.Ready != "yes" {
		return Load{}, false, agora.Errorf(agora.Unavailable, "%s: %s", h.Edge, status.Ready)
	}
	return Load{Holder: h, Agents: int(status.Sessions)}, true, nil
}
