// Package directory is who is there and what they can do, as one edge knows it: a replica of a tenant's directory for
// as long as somebody asks for it.
//
// A replica is loaded from presence when it is first asked for. The log of agent.status tells it who has changed, and
// it reads those again; and it compares itself with presence now and then, so that it is right soon though that log has
// failed. What it shows was read from presence, an agent at a time. Nobody has asked for a while: it is dropped. A
// tenant that nobody asks for costs nothing.
package directory

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// Config sets up a Directory. A zero value means the default that its comment names.
type Config struct {
	Presence *presence.Store // required; used, not owned
	Broker   *broker.Broker  // required; used, not owned
	Compare  time.Duration   // between two comparisons of a replica with presence; 30s
	Unused   time.Duration   // after which a replica that nobody asks for is dropped; 10m
	Log      *slog.Logger    // discards if nil

	deaf bool // tests: the log of agent.status is not listened to
}

func (c Config) withDefaults() Config {
	c.Compare = cmp.Or(c.Compare, 30*time.Second)
	c.Unused = cmp.Or(c.Unused, 10*time.Minute)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// Directory is the replicas of one edge. Its methods may be called at the same time. Those that ask for a tenant's
// directory wait until it is loaded, and for what this edge has changed itself (Touch); they fail with UNAVAILABLE
// while presence can't tell.
type Directory struct {
	cfg  Config
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup // one goroutine for each replica

	mu       sync.Mutex // guards the fields below
	closed   bool
	replicas map[string]*replica // by tenant
}

// New returns a Directory. It asks nothing yet, and nothing runs.
func New(cfg Config) *Directory {
	d := &Directory{cfg: cfg.withDefaults(), replicas: map[string]*replica{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// Close drops all replicas, and waits for their goroutines. Anyone who asks from now on gets UNAVAILABLE.
func (d *Directory) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.work.Wait()
}

// Stats are what replicas take.
type Stats struct {
	Tenants int   // replicas
	Agents  int   // in all of them
	Bytes   int64 // of what is kept of those
}

// Stats returns what the replicas take now. It does not block for long.
func (d *Directory) Stats() (s Stats) {
	for _, r := range d.all() {
		r.mu.RLock()
		s.Agents += len(r.agents)
		s.Bytes += r.bytes
		r.mu.RUnlock()
		s.Tenants++
	}
	return s
}

// Held returns the bytes of the replicas, by tenant.
func (d *Directory) Held() map[string]int64 {
	held := map[string]int64{}
	for _, r := range d.all() {
		r.mu.RLock()
		held[r.tenant] = r.bytes
		r.mu.RUnlock()
	}
	return held
}

// Touch says that this edge has changed an agent: who asks here from now on sees it. It does not block.
func (d *Directory) Touch(tenant string, id agora.AgentID) {
	d.mu.Lock()
	r := d.replicas[tenant]
	d.mu.Unlock()
	if r != nil {
		r.touch(id)
	}
}

// Doubt says that presence may have lost something: every replica compares all of itself with it. It does not block.
func (d *Directory) Doubt() {
	for _, r := range d.all() {
		r.suspect()
	}
}

func (d *Directory) all() []*replica {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]*replica, 0, len(d.replicas))
	for _, r := range d.replicas {
		all = append(all, r)
	}
	return all
}

// Get returns an agent's card, without schemas and the bytes of its registration. AGENT_NOT_FOUND where it is not in
// the directory.
func (d *Directory) Get(ctx context.Context, tenant string, id agora.AgentID) (agora.Agent, error) {
	r, err := d.ask(ctx, tenant)
	if err != nil {
		return agora.Agent{}, err
	}
	r.mu.RLock()
	e := r.agents[id]
	r.mu.RUnlock()
	if e == nil {
		return agora.Agent{}, agora.UnknownAgent(id)
	}
	return e.Agent(), nil
}

// Card returns an agent's whole card, from presence. AGENT_NOT_FOUND.
func (d *Directory) Card(ctx context.Context, tenant string, id agora.AgentID) (agora.Agent, error) {
	return d.cfg.Presence.Directory.Agent(ctx, tenant, id)
}

// All returns the cards of all agents of a tenant, sorted by id, without schemas and the bytes of registrations.
func (d *Directory) All(ctx context.Context, tenant string) ([]agora.Agent, error) {
	all, err := d.Select(ctx, tenant, Filter{})
	if err != nil {
		return nil, err
	}
	return slices.Collect(all), nil
}

// Listed is All for who looks at few of the cards: none is decoded. What it goes through is as it was when it was asked
// for.
func (d *Directory) Listed(ctx context.Context, tenant string) (iter.Seq[presence.Listed], error) {
	r, err := d.ask(ctx, tenant)
	if err != nil {
		return nil, err
	}
	found := r.sorted()
	return func(yield func(presence.Listed) bool) {
		for _, e := range found {
			if !yield(e.Listed) {
				return
			}
		}
	}, nil
}

// Filter says which agents are wanted; what is empty wants all.
type Filter struct {
	Skill   string        // they have exactly this skill, or tool
	Domain  string        // exactly
	Dialect string        // exactly
	After   agora.AgentID // whose ids come behind this one
	From    agora.AgentID // whose ids don't come before this one
}

// Select is All for those agents that a filter takes, each decoded when it is come to: who answers with a page of them
// pays for no more. What it goes through is as it was when it was asked for.
func (d *Directory) Select(ctx context.Context, tenant string, f Filter) (iter.Seq[agora.Agent], error) {
	r, err := d.ask(ctx, tenant)
	if err != nil {
		return nil, err
	}
	found := r.matching(f)
	slices.SortFunc(found, func(a, b *entry) int { return cmp.Compare(a.ID, b.ID) })
	return func(yield func(agora.Agent) bool) {
		for _, e := range found {
			a := e.Agent()
			if f.takes(&a) && !yield(a) { // a hash has told it from the others
				return
			}
		}
	}, nil
}

func (f *Filter) takes(a *agora.Agent) bool {
	named := func(s agora.Skill) bool { return s.Name == f.Skill }
	return (f.Skill == "" || slices.ContainsFunc(a.Skills, named) || slices.ContainsFunc(a.Tools, named)) &&
		(f.Domain == "" || a.Domain == f.Domain) && (f.Dialect == "" || a.DialectName() == f.Dialect)
}

// ask returns the replica of a tenant, loaded and with all that this edge has changed by now; it begins one where there
// is none.
func (d *Directory) ask(ctx context.Context, tenant string) (*replica, error) {
	r, err := d.replica(tenant)
	if err != nil {
		return nil, err
	}
	err = r.wait(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	r.asking--
	r.used = time.Now()
	return r, err
}

// replica returns the replica of a tenant, and counts its caller among those that ask it.
func (d *Directory) replica(tenant string) (*replica, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, agora.Errorf(agora.Unavailable, "the edge is closing")
	}
	r := d.replicas[tenant]
	if r == nil {
		r = newReplica(d, tenant)
		d.replicas[tenant] = r
		d.work.Go(r.run)
	}
	r.asking++
	return r, nil
}

// drops takes a replica that nobody has asked for out, and reports whether it was so.
func (d *Directory) drops(r *replica) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.asking > 0 || r.watched() || time.Since(r.used) < d.cfg.Unused {
		return false
	}
	delete(d.replicas, r.tenant)
	return true
}
