package aip

import (
	"context"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
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

// place names the channel by which the target is called.
func (t *target) place() place {
	if t.link != nil {
		return place{tenant: t.tenant, address: t.address}
	}
	return place{t.tenant, t.address, string(t.id)}
}

// recent is the nodes that were found recently: those of a moment ago are called without another look at presence, and
// those of the last minute while presence can't be asked. The zero value is ready to use.
type recent struct {
	mu     sync.Mutex // guards the fields below
	all    map[agora.Address]recently
	doubts uint64 // how often any node was doubted
}

type recently struct {
	target   *target
	at       time.Time
	believed bool // not doubted since
}

const (
	recentFor  = time.Minute // how long a node that was found is known while presence can't be asked
	recentMost = 10000

	// believedFor is how long a node is called after another edge has ended its session. What this edge does to it
	// counts at once.
	believedFor = 250 * time.Millisecond
)

// find looks up who is called: a node that was found a moment ago is known without a look at presence. NOT_FOUND where
// there is nobody of that name, FORBIDDEN, and UNAVAILABLE while presence can't tell and it was not called in the last
// minute.
func (r *recent) find(ctx context.Context, c *caller, id agora.AgentID) (*target, error) {
	if err := c.actor.MayAddress(id); err != nil {
		return nil, err
	}
	at := agora.ToAgent(c.actor.Principal().Tenant, id)
	t, doubts := r.believed(at)
	if t != nil {
		return t, nil
	}
	card, err := c.actor.Directory().Addressee(ctx, id)
	if err != nil {
		switch agora.AsError(err).Code {
		case agora.AgentNotFound:
			r.forget(at)
			return nil, aip.NoReceiver()
		case agora.Unavailable:
			if t := r.known(at); t != nil {
				return t, nil
			}
		}
		return nil, err
	}
	t = &target{tenant: at.Tenant, id: id, card: card, node: card.Dialect == aip.Dialect, toolbox: card.Type == aip.TypeToolbox, address: aip.About(&card).Address}
	if t.link = originOf(&card); t.link != nil {
		t.address = t.link.Gateway
	}
	if t.node {
		r.put(at, t, doubts)
	}
	return t, nil
}

// believed returns a node that was found a moment ago, and was not doubted since; nil where there is none. doubts is
// for put, of what is found from now on.
func (r *recent) believed(at agora.Address) (t *target, doubts uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.all[at]; known.believed && time.Since(known.at) < believedFor {
		return known.target, r.doubts
	}
	return nil, r.doubts
}

// known returns a node that was found in the last minute; nil where there is none.
func (r *recent) known(at agora.Address) *target {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.all[at]; known.target != nil && time.Since(known.at) < recentFor {
		return known.target
	}
	return nil
}

// put keeps a node that was found. One that may have been doubted while it was looked up is not believed.
func (r *recent) put(at agora.Address, t *target, doubts uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= recentMost {
		r.all = map[agora.Address]recently{}
	}
	r.all[at] = recently{t, time.Now(), r.doubts == doubts}
}

// doubt has the next call of a node look it up: this edge has begun or ended a session of it.
func (r *recent) doubt(at agora.Address) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubts++
	if known, is := r.all[at]; is {
		known.believed = false
		r.all[at] = known
	}
}

// forget drops a node that is not there any more.
func (r *recent) forget(at agora.Address) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, at)
}

// speaks returns as whose what a node says counts at this edge: its principal's, where this edge holds its session;
// else it is known by its id and its tenant alone.
func (r *registry) speaks(t *target) *edge.Actor {
	if n := r.held.of(agora.ToAgent(t.tenant, t.id)); n != nil {
		return n.session.Actor()
	}
	return r.node.Speaker(t.tenant)
}
