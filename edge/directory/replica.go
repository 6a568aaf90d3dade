package directory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

const (
	retry    = time.Second      // before what has failed is tried again
	patience = time.Second      // that the log has: while it fails, presence is asked no later for it
	loading  = 30 * time.Second // that reading the whole of a directory has
	gulp     = 64 << 10         // bytes that are read of the log at once
)

// replica is the directory of one tenant. One goroutine writes it: run.
type replica struct {
	d      *Directory
	tenant string
	wake   chan struct{} // holds one token while there is something to do
	loaded chan struct{} // closed when it was read for the first time, or could not be

	asking int       // those that wait for it to be right; guarded by Directory.mu, as the next
	used   time.Time // when it was asked for last

	// Owned by run.
	inbox    *broker.Inbox // of agent.status; nil while the log could not be asked where it ends
	mark     presence.Mark
	compared time.Time // when it was compared last

	mu      sync.RWMutex // guards the fields below
	agents  map[agora.AgentID]*entry
	index   index
	bytes   int64
	err     error // why it can't be relied on; nil while it can
	doubted bool  // all of it is to be compared
	dirty   map[agora.AgentID]struct{}
	round   chan struct{} // closed when what is dirty now was read, or could not be; nil where nothing is
	reading chan struct{} // the same for what is being read
	watches map[*Watch]struct{}
}

// entry is an agent of a replica. It is not changed once it is there.
type entry struct {
	presence.Listed
	slot uint32 // in the index
}

func newReplica(d *Directory, tenant string) *replica {
	return &replica{
		d: d, tenant: tenant, wake: make(chan struct{}, 1), loaded: make(chan struct{}),
		agents: map[agora.AgentID]*entry{}, dirty: map[agora.AgentID]struct{}{}, watches: map[*Watch]struct{}{},
	}
}

// run keeps the replica right until it is dropped or the directory closed.
func (r *replica) run() {
	defer func() {
		if r.inbox != nil {
			r.inbox.Close()
		}
		r.end()
	}()
	next := time.NewTimer(0)
	defer next.Stop()
	for first := true; r.d.ctx.Err() == nil; first = false {
		err := r.refresh()
		if first {
			close(r.loaded)
		}
		wait := min(time.Until(r.compared.Add(r.d.cfg.Compare)), r.d.cfg.Unused)
		if err != nil {
			wait = min(retry, r.d.cfg.Compare)
		}
		next.Reset(wait)
		select {
		case <-r.wake:
		case <-next.C:
			if r.d.drops(r) {
				return
			}
		case <-r.d.ctx.Done():
		}
	}
}

// refresh does what there is to do: it listens, compares where it is time to, and reads who has changed.
func (r *replica) refresh() error {
	heard := r.hear()
	err := r.compare()
	if err == nil {
		err = r.read()
	}
	r.settle(err)
	return errors.Join(heard, err)
}

// settle notes whether the replica can be relied on, and lets those go on that wait to know.
func (r *replica) settle(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.err == nil && r.d.ctx.Err() == nil {
		r.d.cfg.Log.Warn("directory can't be compared with presence", "err", err)
	}
	if r.err = err; err != nil {
		r.finishRound()
	}
}

// end lets everybody go.
func (r *replica) end() {
	select {
	case <-r.loaded:
	default:
		close(r.loaded)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = agora.Errorf(agora.Unavailable, "the edge is closing")
	}
	r.finishRound()
	for w := range r.watches {
		w.token()
	}
}

// hear takes what the log of agent.status has. A log that fails is no fault of the replica's: it is compared.
func (r *replica) hear() error {
	switch {
	case r.d.cfg.deaf:
		return nil
	case !r.d.cfg.Broker.Connected():
		return agora.Errorf(agora.Unavailable, "the log can't be reached")
	}
	ctx, cancel := context.WithTimeout(r.d.ctx, patience)
	defer cancel()
	if r.inbox == nil {
		if err := r.listen(ctx); err != nil {
			return err
		}
	}
	for {
		all, err := r.inbox.Next(ctx, gulp)
		if err != nil || len(all) == 0 {
			return err
		}
		for _, m := range all {
			r.heard(m)
		}
	}
}

// listen opens the log of agent.status where it ends now. What was said before shows in presence, which is compared
// after it.
func (r *replica) listen(ctx context.Context) error {
	b, to := r.d.cfg.Broker, agora.ToSpace(r.tenant, spaces.StatusSpace)
	at := b.Now()
	last, err := b.Last(ctx, to)
	if err != nil {
		return err
	}
	r.inbox = b.Listen(to, broker.From{After: last, Tail: last, TailAt: at}, r.token)
	r.suspect()
	return nil
}

func (r *replica) heard(m agora.Message) {
	if m.Kind == agora.Gap {
		r.suspect()
		return
	}
	if id, ok := spaces.StatusAgent(m.Body); ok {
		r.mu.Lock()
		r.dirty[id] = struct{}{}
		r.mu.Unlock()
	}
}

// compare reads what may have changed since the last comparison, where it is time to.
func (r *replica) compare() error {
	r.mu.Lock()
	if r.doubted {
		r.mark = presence.Mark{}
	}
	doubted, failed := r.doubted, r.err != nil
	r.doubted = false
	r.mu.Unlock()
	if !doubted && !failed && time.Since(r.compared) < r.d.cfg.Compare {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.d.ctx, loading)
	defer cancel()
	changes, mark, err := r.d.cfg.Presence.Directory.Changed(ctx, r.tenant, r.mark)
	if err != nil {
		r.mark = presence.Mark{} // it may have lost anything
		return err
	}
	r.apply(changes)
	r.mark, r.compared = mark, time.Now()
	return nil
}

// read reads those again that are said to have changed.
func (r *replica) read() error {
	for {
		r.mu.Lock()
		ids := make([]agora.AgentID, 0, len(r.dirty))
		for id := range r.dirty {
			ids = append(ids, id)
		}
		clear(r.dirty)
		round := r.round
		r.round, r.reading = nil, round
		r.mu.Unlock()
		if len(ids) == 0 {
			return nil
		}
		ctx, cancel := context.WithTimeout(r.d.ctx, loading)
		changes, err := r.d.cfg.Presence.Directory.Read(ctx, r.tenant, ids)
		cancel()
		if err == nil {
			r.apply(changes)
		} else {
			r.suspect() // nobody says again who it was
			r.settle(err)
		}
		if round != nil {
			close(round)
		}
		if err != nil {
			return err
		}
	}
}

// sorted returns all agents, sorted by id.
func (r *replica) sorted() []*entry {
	r.mu.RLock()
	all := make([]*entry, 0, len(r.agents))
	for _, e := range r.index.slots {
		if e != nil {
			all = append(all, e)
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// apply has the replica show what was read of presence.
func (r *replica) apply(c presence.Changes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := c.Gone
	if c.All {
		stays := make(map[agora.AgentID]struct{}, len(c.Listed))
		for _, l := range c.Listed {
			stays[l.ID] = struct{}{}
		}
		for id := range r.agents {
			if _, ok := stays[id]; !ok {
				gone = append(gone, id)
			}
		}
	}
	for _, id := range gone {
		r.put(id, nil)
	}
	for _, l := range c.Listed {
		if old := r.agents[l.ID]; old == nil || !old.Same(l) {
			r.put(l.ID, &entry{Listed: l})
		}
	}
}

// put has an agent be e, or gone where that is nil. The caller holds mu.
func (r *replica) put(id agora.AgentID, e *entry) {
	old := r.agents[id]
	if old == e {
		return
	}
	if old != nil {
		terms := termsOf(old.Agent())
		r.index.remove(old, terms)
		r.bytes -= old.size(terms)
		delete(r.agents, id)
	}
	if e != nil {
		terms := termsOf(e.Agent())
		r.index.add(e, terms)
		r.bytes += e.size(terms)
		r.agents[id] = e
	}
	for w := range r.watches {
		w.note(id)
	}
}

// entryCost is about what an entry takes beside its texts: itself, its place in the map, its slot and the words that it
// alone has.
const entryCost = 256

func (e *entry) size(terms []term) int64 { return int64(e.Size() + len(terms)*4 + entryCost) }

// touch says that this edge has changed an agent.
func (r *replica) touch(id agora.AgentID) {
	r.mu.Lock()
	r.dirty[id] = struct{}{}
	if r.round == nil {
		r.round = make(chan struct{})
	}
	r.mu.Unlock()
	r.token()
}

// suspect has all of the replica compared.
func (r *replica) suspect() {
	r.mu.Lock()
	r.doubted = true
	r.mu.Unlock()
	r.token()
}

func (r *replica) token() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// finishRound lets those go on that wait for what this edge has changed. The caller holds mu.
func (r *replica) finishRound() {
	if r.round != nil {
		close(r.round)
		r.round = nil
	}
}

// wait returns when the replica is loaded and has what this edge changed before the call; and why it can't be relied
// on, if it can't.
func (r *replica) wait(ctx context.Context) error {
	select {
	case <-r.loaded:
	case <-ctx.Done():
		return agora.AsError(ctx.Err())
	}
	r.mu.RLock()
	rounds := [...]chan struct{}{r.reading, r.round}
	r.mu.RUnlock()
	for _, round := range rounds {
		if round == nil {
			continue
		}
		select {
		case <-round:
		case <-ctx.Done():
			return agora.AsError(ctx.Err())
		}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.err
}

// watched reports whether somebody watches the replica.
func (r *replica) watched() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.watches) > 0
}
