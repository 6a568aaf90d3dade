package edge

import (
	"context"
	"crypto/rand"
	"hash/maphash"
	"sync"
	"time"

	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/edge/ownership"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/spaces"
)

// Start takes the edge's lease and starts its loops. It fails when presence
// or the log can't be reached until ctx is over, and when another edge that lives has the same id.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	n := newNode(cfg.withDefaults())
	answers := &answers{node: n}
	n.stopAnswers = answers.end
	err := answers.begin(n.owner.Holder()) // who holds something can be asked
	if err == nil {
		err = n.owner.Start(ctx)
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	if n.approvals.book != nil {
		n.approvals.book.MailBy(&n.approvals)
	}
	n.work.Go(n.writeBehindLoop)
	n.work.Go(func() { n.limits.Shedder.Run(n.ctx) })
	if n.cfg.Moving.Percent > 0 {
		n.work.Go(func() { n.balancer.run(n.ctx) })
	}
	if w, ok := n.cfg.Auth.(Warden); ok {
		n.work.Go(func() { n.sessions.revocationLoop(n.ctx, w) })
	}
	return n, nil
}

// newNode puts a node together that does nothing yet.
func newNode(cfg Config) *Node {
	n := &Node{cfg: cfg, credentials: credentials{cfg.Auth, cfg.Policy}, seed: maphash.MakeSeed()}
	n.balancer = &Balancer{node: n}
	n.begin(cfg.Broker.Now())
	n.cfg.Presence = cfg.Presence.With(func(c *presence.Config) {
		c.Lease, c.Held, c.SpaceType, c.Now, c.Cards = cfg.Lease, n.sessions.holds, spaceType, cfg.Broker.Now, n.limits.cards
	})
	cfg = n.cfg
	n.limits = newLimiters(cfg, n.sheds(), n.Authenticate)
	n.hub = spaces.New(spaces.Config{
		Broker: cfg.Broker, Presence: cfg.Presence, NoCreate: cfg.NoAutoCreate, WholeRoster: cfg.WholeRoster,
		RosterBytes: cfg.Limits.Frame / 2, DeltaThreshold: cfg.DeltaThreshold, Log: cfg.Log})
	n.directory = directory.New(directory.Config{Broker: cfg.Broker, Presence: cfg.Presence, Compare: cfg.Compare, Log: cfg.Log})
	cfg.Broker.BoundFrames(cfg.Limits.Frame)
	n.edges = edges{cfg.Broker, cfg.Presence, cfg.Probe}
	n.owner = n.newOwner()
	n.relay = relay.New(relay.Config{
		Broker: cfg.Broker, Presence: cfg.Presence, MailboxOff: cfg.MailboxOff, MaxRecords: cfg.MaxRecords,
		MaxAge: cfg.MaxAge, Answer: cfg.Answer, Usage: n.limits.usage, InFlight: cfg.Limits.InFlight,
		Valid: n.owner.Lease().Valid, Reassert: n.sessions.reassert, Confirmed: n.edges.askConfirmed, Taken: n.edges.askTaken, Log: cfg.Log,
	})
	n.calls = newCalls(cfg, n.owner, n.relay, &n.limits)
	n.owner.Restores(n.calls.Hold)
	n.holders = holders{n.owner.Holder(), cfg.Broker, cfg.Presence, &n.sessions, n.calls}
	n.approvals = approvals{cfg.Approvals, cfg.Broker, n.relay}
	n.wheel = NewWheel(min(time.Second, cfg.Confirm/2, cfg.Heartbeat/2, cfg.Timeout/4))
	return n
}

// newOwner returns what knows who holds ids, for this edge.
func (n *Node) newOwner() *ownership.Owner {
	return ownership.New(ownership.Config{
		Holder: presence.Holder{Edge: n.cfg.ID, Incarnation: rand.Text()[:16]}, Broker: n.cfg.Broker, Presence: n.cfg.Presence,
		Hub: n.hub, Directory: n.directory, Sessions: ownedSessions{&n.sessions}, Peers: &n.edges,
		Lease: n.cfg.Lease, Search: n.cfg.Search, Probe: n.cfg.Probe, Ready: n.Ready, Superseded: n.cfg.Superseded,
		SweepCalls: func(ctx context.Context) error { return n.calls.Sweep(ctx) },
		Adopts:     n.dials.can,
		Adopt: func(ctx context.Context, o presence.Orphan) error {
			_, who, err := readVouched(o.Dial.By)
			if err != nil {
				return err
			}
			return n.dials.adopt(ctx, o, n.actor(who))
		},
		Context: n.ctx, Go: n.background, Log: n.cfg.Log,
	})
}

// Close ends what is left, within a few seconds even if neither log nor presence can be reached. Agents that are still
// connected are cut off and may return within their grace, at any edge.
func (n *Node) Close() {
	n.draining.Store(true)
	n.limits.Shedder.Shut(ownership.ErrDraining)
	n.cutOff()
	n.calls.Close()
	n.stop()
	n.work.Wait()
	n.stopAnswers()
	n.owner.Close()
	for _, s := range n.sessions.all() {
		s.out.sender().Close()
	}
	n.wheel.Close()
	n.directory.Close()
	n.hub.Close()
	n.relay.Close()
}

// shuttingDown is why an edge that is closed closes its connections.
var shuttingDown = Reason{Cause: Drained, Text: "the edge is shutting down"}

// cutOff closes every connection and tells presence what it can in a short time.
func (n *Node) cutOff() {
	ctx, cancel := context.WithTimeout(n.ctx, cutOffTime)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range n.sessions.close() {
		s.conn.Close(shuttingDown)
		if s.stop(false) {
			all.Go(func() { s.departure.detach(ctx, s) })
		}
	}
	all.Wait()
	if !n.drained.Load() {
		n.sessions.flushPositions(ctx, n.cfg.Presence, n.cfg.Log)
	}
}

// cutOffTime bounds what is told to log and presence when the node is closed without having drained, or in vain.
const cutOffTime = 2 * time.Second
