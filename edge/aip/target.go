package aip

import (
	"context"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/aip"
)

// target is who is called.
type target struct {
	tenant  string
	id      agora.AgentID
	card    agora.Agent
	node    bool    // it is dialled: an agent, or a toolbox
	toolbox bool    //
	address string  // of a node
	link    *origin // by which it is reached, where it is another gateway's, whose address that is then; nil where it is not
}

// find looks up who is called. NOT_FOUND where there is nobody of that name, FORBIDDEN, and UNAVAILABLE while presence can't tell and it was not called in the last minute.
func (d *Door) find(ctx context.Context, c *caller, id agora.AgentID) (*target, error) {
	p := c.actor.Principal()
	k := recentKey{p.Tenant, p.Name, id}
	card, err := c.actor.Addressee(ctx, id)
	if err != nil {
		switch agora.AsError(err).Code {
		case agora.AgentNotFound:
			d.recent.forget(k)
			return nil, aip.NoReceiver()
		case agora.Unavailable:
			if t := d.recent.get(k); t != nil {
				return t, nil
			}
		}
		return nil, err
	}
	t := &target{tenant: p.Tenant, id: id, card: card, node: card.Dialect == aip.Dialect, toolbox: card.Type == aip.TypeToolbox, address: aip.About(&card).Address}
	if t.link = originOf(&card); t.link != nil {
		t.address = t.link.Gateway
	}
	if t.node {
		d.recent.put(k, t)
	}
	return t, nil
}

// recent is the nodes that were found of late, for while presence can't be asked. The zero value is ready to use.
type recent struct {
	mu  sync.Mutex // guards the field below
	all map[recentKey]recently
}

type recentKey struct {
	tenant, principal string
	id                agora.AgentID
}

type recently struct {
	target *target
	at     time.Time
}

const (
	recentFor  = time.Minute // how long a node that was found is known
	recentMost = 10000
)

func (r *recent) put(k recentKey, t *target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= recentMost {
		r.all = map[recentKey]recently{}
	}
	r.all[k] = recently{t, time.Now()}
}

func (r *recent) get(k recentKey) *target {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.all[k]; known.target != nil && time.Since(known.at) < recentFor {
		return known.target
	}
	return nil
}

func (r *recent) forget(k recentKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, k)
}
