// Package edge is one agent's session, whatever its door: who it is, what it
// says and what it gets; and the node that holds the sessions of one edge.
package edge

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/latency"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// Node is one edge's core: its lease, its sessions, and what it does for the
// cluster. Its methods may be called at the same time.
type Node struct {
	lifetime
	cfg         Config
	credentials credentials
	limits      limiters
	screens     screens
	approvals   approvals
	hub         *spaces.Hub
	directory   *directory.Directory
	relay       *relay.Relay
	calls       *call.Registry
	owner       *ownership.Owner
	edges       edges
	holders     holders
	sessions    sessionTable
	dials       dials
	wheel       *Wheel
	balancer    *Balancer
	seed        maphash.Seed // of the hashes of callers
	stats       counters
	stopAnswers func() // stops answering other edges; waits for what is being answered
}

// Config returns the settings, defaults filled in.
func (n *Node) Config() Config { return n.cfg }

// Ready returns nil while the node can serve, else what is missing.
func (n *Node) Ready() error {
	switch {
	case n.draining.Load():
		return agora.Errorf(agora.Unavailable, "the edge is draining")
	case !n.cfg.Broker.Connected():
		return agora.Errorf(agora.Unavailable, "the log can't be reached")
	}
	if _, ok := n.owner.Lease().Valid(); !ok {
		return agora.Errorf(agora.Unavailable, "the edge's lease has run out: presence can't be reached")
	}
	return n.cfg.Broker.Stores()
}

// Holder returns which life of which edge the node is, as presence knows it.
func (n *Node) Holder() presence.Holder { return n.owner.Holder() }

// Shedder returns the load shedder of the edge, which has its connections, whatever their door.
func (n *Node) Shedder() *admission.Shedder { return n.limits.Shedder }

// SetLimits puts other limits in force, for sessions that run too. An agent that is beyond one already keeps
// what it has. Frame, InFlight, Connections and Queued stay as they were at the start.
func (n *Node) SetLimits(l admission.Limits) {
	n.limits.Set(l)
	n.limits.Connections.Refill()
	n.limits.rates.Refill()
	for _, s := range n.sessions.all() {
		s.actor.quota.Refill()
	}
}

// Limits returns the limits in force, defaults filled in.
func (n *Node) Limits() admission.Limits { return n.limits.Load().Limits }

// ConnLimiter returns the limiter of all connections to the edge.
func (n *Node) ConnLimiter() *admission.ConnLimiter { return n.limits.Connections }

// Usage returns what counts what agents hold at this edge, whatever their door.
func (n *Node) Usage() *admission.Usage { return n.limits.usage }

// Tenants returns the counters of each tenant that has been at this edge, by
// its name; those beyond the first [admission.CountedTenants] share one entry. They go on counting.
func (n *Node) Tenants() map[string]*admission.TenantStats { return n.limits.rates.Tenants() }

// Screens has a door look at what agents of every dialect say, as it is only there known what that means to the agents
// of its own. It may be called at any time, by one goroutine at a time.
func (n *Node) Screens(s Screen) { n.screens.add(s) }

// Restores has restore called whenever presence may have lost what it knew, before it is taken for whole again: it
// writes once more what its door keeps there. Its error has the node call it again. It may be called at any time until
// the node is closed, by one goroutine at a time.
func (n *Node) Restores(restore func(context.Context) error) { n.owner.Restores(restore) }

// Reap ends a session permanently that is ending, whichever edge had it. It returns when the session is over; nil also
// where somebody else has ended it.
func (n *Node) Reap(ctx context.Context, tenant string, id agora.AgentID) error {
	return n.owner.Reap(ctx, tenant, id, false)
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	s := Stats{
		Sessions: n.stats.sessions.Load(), Started: n.stats.started.Load(), Sent: n.stats.sent.Load(),
		Unrenewed: n.owner.Lease().Failed(), LeaseLeft: n.owner.Lease().Left(), Draining: n.draining.Load(), Ended: make(map[string]int64, len(causes)),
		Renewals: n.owner.Lease().Renewals(), Swept: n.owner.Swept(),
	}
	for c := Goodbye; int(c) < len(causes); c++ {
		s.Ended[c.String()] = n.stats.ended[c].Load()
	}
	return s
}

// ToWritten returns how long messages took from being stored to being written to the socket of an agent that was
// there, by the log's clock: the oldest of what one write took counts.
func (n *Node) ToWritten() *latency.Histogram { return &n.stats.toWritten }

// Calls returns the counters of the calls made at this edge. They go on counting.
func (n *Node) Calls() *call.Stats { return n.calls.Stats() }

// Directory returns what the directories that this edge keeps take.
func (n *Node) Directory() directory.Stats { return n.directory.Stats() }

// lifetime is how far a node has come, and what it has under way: its loops, and what is done behind.
type lifetime struct {
	began    time.Time       // by the log's clock
	ctx      context.Context // ends when the node is closed
	stop     context.CancelFunc
	work     sync.WaitGroup // is waited for then
	draining atomic.Bool
	drained  atomic.Bool // Drain has told log and presence what it could
}

func (l *lifetime) begin(now time.Time) {
	l.began = now.UTC()
	l.ctx, l.stop = context.WithCancel(context.Background())
}

// background runs f, which may block for round trips, and is waited for.
func (l *lifetime) background(f func()) {
	if l.ctx.Err() == nil {
		l.work.Go(f)
	}
}
