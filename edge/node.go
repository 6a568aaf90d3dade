// Package edge is one agent's session, whatever its door: who it is, what it
// says and what it gets; and the node that holds the sessions of one edge.
package edge

import (
	"cmp"
	"context"
	"crypto/rand"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/trace"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// Config sets up a Node. A zero value means the default that its comment names.
type Config struct {
	ID       string          // of the edge; random
	Broker   *broker.Broker  // required; used, not owned
	Presence *presence.Store // required; used, not owned
	Auth     Authenticator   // required

	Lease     time.Duration // how long an edge that is silent holds its sessions, the same at all edges: Presence's own is set to it; 10s
	Compare   time.Duration // between two comparisons of a tenant's directory with presence; 30s. For tests
	Search    time.Duration // from presence being whole again to looking through the log for what it had lost; two leases and up to one more. For tests
	Heartbeat time.Duration // session.heartbeat: between signs of life to a quiet agent; 30s
	Timeout   time.Duration // session.timeout: a connection silent for so long is dead; 60s
	Confirm   time.Duration // between pings while frames are unconfirmed; 1.5s
	Answer    time.Duration // how long presence has for what a message waits for, before its agent hears that it can't be reached; 3s
	Patience  time.Duration // how long an agent that speaks through another edge waits for the holder of its session; 5s
	Probe     time.Duration // how long the connection that holds an id has for a sign of life before a newcomer gets the id; 1s

	MailboxOff     bool                // mailbox off: an agent without a session is AGENT_OFFLINE
	MaxAge         time.Duration       // mailbox.max-age; 10m
	MaxRecords     int64               // mailbox.max-records; 4096
	NoAutoCreate   bool                // spaces.auto-create off
	DeltaThreshold int                 // spaces.delta-threshold: bytes of a published text beyond which it goes out in deltas; 16 KiB
	Doubt          time.Duration       // how long a call that is not known to be asked is asked again without a look for it; 45s. For tests
	Register       time.Duration       // register.ttl: how long a registration without a connection lasts that does not say so itself; 1h
	WholeRoster    int                 // spaces.whole-roster: members of a space up to which each change names all of them; 256
	DrainRate      int                 // drain.rate: agents told to reconnect per second; 1000
	Limits         admission.Limits    // at the start: see [Node.SetLimits]
	Policy         *policy.Policy      // who may do what: after other rules were set, Reconsider is to be called; everybody everything if nil
	Dialer         *dial.Dialer        // what doors dial agents with; one that denies link-local addresses if nil
	Proxies        *Proxies            // whose word is taken about where connections come from; nobody if nil
	Approvals      *approval.Approvals // what agents ask approval for; nobody can if nil. Used, not owned
	Tracer         *trace.Tracer       // makes spans of messages; none if nil. Used, not owned
	Log            *slog.Logger        // discards if nil

	// Superseded is told, at most once, that another edge that lives has taken this one's id and lease: this one is to be
	// drained and closed. It must not block. Nothing is told if nil; either way the node serves no agent when its lease is over.
	Superseded func(error)
}

func (c Config) withDefaults() Config {
	c.ID = cmp.Or(c.ID, "edge-"+rand.Text()[:8])
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 30*time.Second)
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	c.Confirm = cmp.Or(c.Confirm, 1500*time.Millisecond)
	c.Probe = cmp.Or(c.Probe, time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
	c.Answer = cmp.Or(c.Answer, 3*time.Second)
	c.MaxAge = cmp.Or(c.MaxAge, 10*time.Minute)
	c.MaxRecords = cmp.Or(c.MaxRecords, 4096)
	c.DrainRate = cmp.Or(c.DrainRate, 1000)
	c.Register = cmp.Or(c.Register, time.Hour)
	c.Limits = c.Limits.WithDefaults()
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Policy == nil {
		c.Policy = new(policy.Policy)
	}
	if c.Dialer == nil {
		c.Dialer = dial.New(dial.Config{})
	}
	if c.Proxies == nil {
		c.Proxies = new(Proxies)
	}
	if c.Superseded == nil {
		c.Superseded = func(error) {}
	}
	return c
}

// Node is one edge's core: its lease, its sessions, and what it does for the
// cluster. Its methods may be called at the same time.
type Node struct {
	cfg       Config
	holder    presence.Holder
	relay     *relay.Relay
	calls     *call.Registry
	directory *directory.Directory
	hub       *spaces.Hub
	wheel     *Wheel
	tasks
	edges    edges
	answers  answers
	acts     acts
	owner    *ownership.Owner
	stats    counters
	entrance Entrance
	limits   limiters
	sessions sessionTable
	seed     maphash.Seed // of the hashes of callers
	sends    pendingSends
	began    time.Time // by the log's clock

	draining atomic.Bool
	drained  atomic.Bool // Drain has told log and presence what it could
	screens  screens
	dials    dials
}

// Start takes the edge's lease and starts its loops. It fails when presence
// or the log can't be reached until ctx is over, and when another edge that lives has the same id.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	n := &Node{
		cfg:    cfg,
		holder: presence.Holder{Edge: cfg.ID, Incarnation: rand.Text()[:16]},
		seed:   maphash.MakeSeed(),
	}
	n.cfg.Presence = cfg.Presence.With(func(c *presence.Config) {
		c.Lease, c.Held, c.SpaceType, c.Now = cfg.Lease, n.sessions.holds, spaceType, cfg.Broker.Now
	})
	n.limits = newLimiters(n.cfg, admission.ShedderConfig{Unattributed: n.heldForNobody, ShrinkQueues: n.shrinkQueues})
	n.start()
	n.hub = spaces.New(spaces.Config{
		Broker: cfg.Broker, Presence: n.cfg.Presence, NoCreate: cfg.NoAutoCreate, WholeRoster: cfg.WholeRoster,
		DeltaThreshold: cfg.DeltaThreshold, Log: cfg.Log})
	n.directory = directory.New(directory.Config{Broker: cfg.Broker, Presence: n.cfg.Presence, Compare: cfg.Compare, Log: cfg.Log})
	n.edges = edges{cfg.Broker, n.cfg.Presence, cfg.Probe}
	n.answers.node = n
	n.owner = n.newOwner()
	n.relay = relay.New(relay.Config{
		Broker: cfg.Broker, Presence: n.cfg.Presence, MailboxOff: cfg.MailboxOff, MaxRecords: cfg.MaxRecords,
		MaxAge: cfg.MaxAge, Answer: cfg.Answer, Streams: func() int { return n.limits.Load().Streams }, InFlight: cfg.Limits.InFlight,
		Valid: n.owner.Lease().Valid, Confirmed: n.edges.askConfirmed, Taken: n.edges.askTaken, Log: cfg.Log,
	})
	n.calls = newCalls(n.cfg, n.holder, n.owner, n.relay, &n.limits)
	n.owner.Restores(n.calls.Hold)
	n.acts = acts{n.holder, cfg.Broker, n.cfg.Presence, &n.sessions, n.calls}
	n.began = cfg.Broker.Now().UTC()
	n.entrance = Entrance{Connections: n.limits.conns, Shedder: n.limits.shedder, Authenticate: n.Authenticate}
	n.wheel = NewWheel(min(time.Second, cfg.Confirm/2, cfg.Heartbeat/2, cfg.Timeout/4))
	if err := n.join(ctx); err != nil {
		n.Close()
		return nil, err
	}
	if cfg.Approvals != nil {
		cfg.Approvals.MailBy(n)
	}
	n.work.Go(n.writeBehindLoop)
	n.work.Go(func() { n.limits.shedder.Run(n.ctx) })
	if w, ok := cfg.Auth.(Warden); ok {
		n.work.Go(func() { n.revocationLoop(w) })
	}
	return n, nil
}

// newOwner returns what knows who holds ids, for this edge.
func (n *Node) newOwner() *ownership.Owner {
	return ownership.New(ownership.Config{
		Holder: n.holder, Broker: n.cfg.Broker, Presence: n.cfg.Presence, Hub: n.hub, Directory: n.directory, Sessions: ownedSessions{&n.sessions}, Peers: &n.edges,
		Lease: n.cfg.Lease, Search: n.cfg.Search, Probe: n.cfg.Probe, Ready: n.Ready, Superseded: n.cfg.Superseded,
		SweepCalls: func(ctx context.Context) error { return n.calls.Sweep(ctx) }, Adopts: n.adoptable, Adopt: n.adoptVouched,
		Context: n.ctx, Go: n.background, Log: n.cfg.Log,
	})
}

// Restores has restore called whenever presence may have lost what it knew, before it is taken for whole again: it writes once more what its door
// keeps there. Its error has the node call it again. It may be called at any time until the node is closed, by one goroutine at a time.
func (n *Node) Restores(restore func(context.Context) error) { n.owner.Restores(restore) }

// Reap ends a session for good that is ending, whichever edge had it. It returns when the session is over; nil also where somebody else has ended it.
func (n *Node) Reap(ctx context.Context, tenant string, id agora.AgentID) error {
	return n.owner.Reap(ctx, tenant, id, false)
}

// join makes the edge one that others can ask, then takes its lease.
func (n *Node) join(ctx context.Context) error {
	if err := n.answers.begin(n.holder); err != nil {
		return err
	}
	return n.owner.Start(ctx)
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
	return nil
}

// edgeStatus is what this edge says of itself.
func (n *Node) edgeStatus() *EdgeStatus {
	s, l := n.Stats(), n.cfg.Broker.Stats()
	v := &EdgeStatus{
		Ready: "yes", Draining: s.Draining, Since: n.began, Sessions: s.Sessions, Started: s.Started, Ended: s.Ended, Stored: s.Sent,
		LeaseLeft: s.LeaseLeft.Seconds(), Log: n.cfg.Broker.Connected(), Skew: l.Skew.Seconds(),
		Lanes: l.Lanes, Inboxes: l.Inboxes, Held: n.limits.shedder.Held(),
	}
	if err := n.Ready(); err != nil {
		v.Ready = agora.AsError(err).Message
	}
	return v
}

// Close ends what is left, within a few seconds even if neither log nor presence can be reached. Agents that are still connected are cut
// off and may return within their grace, at any edge.
func (n *Node) Close() {
	n.draining.Store(true)
	n.limits.shedder.Shut(ownership.ErrDraining)
	n.cutOff()
	n.calls.Close()
	n.stop()
	n.work.Wait()
	n.answers.end()
	n.owner.Close()
	for _, s := range n.sessions.all() {
		s.out.sender().Close()
	}
	n.wheel.Close()
	n.directory.Close()
	n.hub.Close()
	n.relay.Close()
}

// cutOff closes every connection and tells presence what it can in a short time.
func (n *Node) cutOff() {
	ctx, cancel := context.WithTimeout(n.ctx, cutOffTime)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range n.sessions.all() {
		s.conn.Close(Reason{Cause: Drained, Text: "the edge is shutting down"})
		if s.stop(false) {
			all.Go(func() { leaver{s}.detach(ctx) })
		}
	}
	all.Wait()
	if !n.drained.Load() {
		n.flushPositions(ctx)
	}
}

// cutOffTime bounds what is told to log and presence when the node is closed without having drained, or in vain.
const cutOffTime = 2 * time.Second

// spaceType is the type of a space that is there.
func spaceType(space string) string {
	typ, err := spaces.Type(space)
	if err != nil {
		return spaces.Public
	}
	return typ
}
