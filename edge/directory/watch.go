package directory

import (
	"context"

	"github.com/agora-relay/agora"
)

// ChangeKind says what has become of an agent.
type ChangeKind uint8

// The kinds.
const (
	Added   ChangeKind = iota + 1 // it is in the directory now
	Updated                       // its card is another one, or its session
	Removed                       // it is in the directory no more; the Change has its last card
)

// Change is what has become of one agent since the watch told of it last.
type Change struct {
	Kind  ChangeKind
	Agent agora.Agent // without schemas and the bytes of its registration
}

// changesAtOnce is how many changes one Next returns at most.
const changesAtOnce = 256

// Watch tells of what changes in a tenant's directory: first of all agents that are there, as Added. Of each agent its
// changes come in order, and each once. Who is slow to ask learns how an agent is now and not how it was in between;
// so what waits for it is bounded by the number of agents. Its methods are for one goroutine, but for Close.
type Watch struct {
	r     *replica
	ready chan struct{} // holds one token while there may be something

	// Guarded by replica.mu.
	told   map[agora.AgentID]*entry // as which it was told of
	queue  []agora.AgentID          // that may be another by now, in the order in which they changed
	queued map[agora.AgentID]struct{}
	closed bool
}

// Watch begins to watch a tenant's directory. The caller closes it. While it is open, the replica stays.
func (d *Directory) Watch(ctx context.Context, tenant string) (*Watch, error) {
	for {
		r, err := d.ask(ctx, tenant)
		if err != nil {
			return nil, err
		}
		if w := r.watch(); w != nil {
			return w, nil
		}
	}
}

// watch returns a new watch; nil where the replica was just dropped.
func (r *replica) watch() *Watch {
	w := &Watch{r: r, ready: make(chan struct{}, 1), told: map[agora.AgentID]*entry{}, queued: map[agora.AgentID]struct{}{}}
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.d.replicas[r.tenant] != r {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches[w] = struct{}{}
	for id := range r.agents {
		w.note(id)
	}
	return w
}

// Next returns what has changed since it was called last, or since Watch: it blocks while that is nothing. It fails
// when ctx is over, and when the watch or the directory was closed.
func (w *Watch) Next(ctx context.Context) ([]Change, error) {
	for {
		changes, err := w.take()
		if err != nil || len(changes) > 0 {
			return changes, err
		}
		select {
		case <-w.ready:
		case <-w.r.d.ctx.Done():
			return nil, agora.Errorf(agora.Unavailable, "the edge is closing")
		case <-ctx.Done():
			return nil, agora.AsError(ctx.Err())
		}
	}
}

func (w *Watch) take() (changes []Change, err error) {
	r := w.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.closed {
		return nil, agora.Errorf(agora.Unavailable, "the watch is closed")
	}
	for len(w.queue) > 0 && len(changes) < changesAtOnce {
		id := w.queue[0]
		w.queue = w.queue[1:]
		delete(w.queued, id)
		now, before := r.agents[id], w.told[id]
		switch {
		case now == before:
		case now == nil:
			delete(w.told, id)
			changes = append(changes, Change{Removed, before.Agent()})
		case before == nil:
			w.told[id] = now
			changes = append(changes, Change{Added, now.Agent()})
		default:
			w.told[id] = now
			changes = append(changes, Change{Updated, now.Agent()})
		}
	}
	return changes, nil
}

// note says that an agent may be another. The caller holds replica.mu.
func (w *Watch) note(id agora.AgentID) {
	if _, is := w.queued[id]; is {
		return
	}
	w.queued[id] = struct{}{}
	w.queue = append(w.queue, id)
	w.token()
}

func (w *Watch) token() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// Close ends the watch; Next fails from now on. Idempotent.
func (w *Watch) Close() {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.closed = true
	delete(w.r.watches, w)
	w.told, w.queue, w.queued = nil, nil, nil
	w.token()
}
