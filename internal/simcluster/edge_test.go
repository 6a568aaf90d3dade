package simcluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/faultnet"
	"github.com/agora-relay/agora/presence"
)

// Short times, so that what takes a lease or a grace takes seconds. What goes by the clock goes some dozens of times in
// a history, and no more often: most of a history's cost is in it.
const (
	lease      = 5 * time.Second
	grace      = 8 * time.Second
	auditEvery = 4 * time.Second        // shorter than a lease: who is stopped has all that was stored before another takes over
	probeEvery = 4 * time.Second        // a new leader is told of; this finds the one whose word was lost
	confirm    = 400 * time.Millisecond // some times in a lease
	heartbeat  = 2 * time.Second

	givesUp = time.Second // after which an edge looks for what is not answered

	watcherAudit = 5 * time.Second // it waits for what nobody else waits for
)

// Where nobody looks: connections come from the backends.
const (
	logAddr      = "nats://127.0.0.1:4222"
	presenceAddr = "127.0.0.1:6379"
)

// node is an edge: a real one, but for sockets and a door.
type node struct {
	id     string
	log    *faultnet.Link // to the log
	pres   *faultnet.Link // to presence
	skew   time.Duration
	broker *broker.Broker
	store  *presence.Store
	node   *edge.Node
	actor  *edge.Actor
	dead   atomic.Bool
	gone   atomic.Bool     // and all that it had written has arrived or is lost
	life   context.Context // ends when the edge is killed, or ends
	die    context.CancelFunc
	asked  *approval.Approvals // nil where the history has none
	dials  *agoratest.LineDoor // nil where the history has no agents that edges dial

	mu     sync.Mutex // guards frozen
	moved  sync.Cond  // on mu
	frozen bool
}

// startEdge starts one more edge, whose wall clock is off by skew.
func (w *world) startEdge(skew time.Duration) *node {
	w.started++
	skew += w.plan.off(w.started)
	e := &node{id: fmt.Sprint("e", w.started), log: faultnet.From(w.backends.log.Dial), pres: faultnet.From(w.dialPresence), skew: skew}
	e.moved.L = &e.mu
	e.life, e.die = context.WithCancel(w.scenes.ctx)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	if e.broker, err = broker.Connect(ctx, w.brokerConfig(e)); err != nil {
		panic(fmt.Sprintf("edge %s: %v", e.id, err))
	}
	e.store = presence.New(presence.Config{
		Client: redis.NewClient(&redis.Options{
			Addr: presenceAddr, Dialer: e.pres.DialContext, MaxRetries: 1, DialerRetries: 1, DialTimeout: lease, ReadTimeout: lease,
		}),
		Lease: lease, Grace: grace, Known: time.Hour, EmptyGrace: time.Hour, Log: slog.New(storyLog{w: w, edge: e.id}),
	})
	cfg := edge.Config{
		ID: e.id, Broker: e.broker, Presence: e.store, Auth: byName{}, Lease: lease, Confirm: confirm,
		Heartbeat: heartbeat, Timeout: patience, MaxRecords: w.plan.Records, MaxAge: time.Hour, Log: slog.New(storyLog{w: w, edge: e.id}),
	}
	if slices.Contains(w.plan.Scenes, "balances") {
		cfg.Moving = edge.Moving{Percent: 25, Every: 10 * time.Second, Least: 6, Rest: settledIn}
	}
	nodes := w.scenes.dialled()
	if nodes != nil {
		cfg.Dialer = dial.New(dial.Config{Connect: nodes.connector(e)})
	}
	if slices.Contains(w.plan.Scenes, "approvals") {
		e.asked = approval.New(approval.Config{Book: e.broker.Book(), Now: e.broker.Now, Expiry: expiry, Log: cfg.Log})
		cfg.Approvals = e.asked
	}
	for e.node, err = edge.Start(ctx, cfg); err != nil && ctx.Err() == nil; e.node, err = edge.Start(ctx, cfg) {
		<-time.After(100 * time.Millisecond) // presence did not answer in time: a lease is short
	}
	if err == nil {
		e.actor, err = e.node.Authenticate(ctx, edge.Credentials{})
	}
	if err != nil {
		panic(fmt.Sprintf("edge %s: %v", e.id, err))
	}
	if nodes != nil {
		e.dials = agoratest.NewLineDoor(e.node)
	}
	w.mu.Lock()
	w.edges = append(w.edges, e)
	w.mu.Unlock()
	return e
}

func (w *world) brokerConfig(e *node) broker.Config {
	return broker.Config{
		URL: logAddr, Name: e.id,
		Options: []nats.Option{nats.SetCustomDialer(e.log), nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(0, 0)},
		Memory:  true, MaxRecords: w.plan.Records, MaxAge: time.Hour, Duplicates: 2 * time.Minute, ShardBytes: 64 << 20, Shards: w.plan.shards(),
		Audit: auditEvery, Probe: probeEvery, Retry: 250 * time.Millisecond, GiveUp: givesUp, InboxBytes: 2 << 10, Log: slog.New(storyLog{w: w, edge: e.id}),
		Now: func() time.Time { return time.Now().Add(e.skew) },
	}
}

// byName takes every token for the name of a principal that may be anybody. Anyone who has none is anybody.
type byName struct{}

func (byName) Authenticate(ctx context.Context, c edge.Credentials) (edge.Principal, error) {
	if c.Token == "" {
		return auth.None().Authenticate(ctx, c)
	}
	return edge.Principal{Name: c.Token, Any: true}, nil
}

// as returns a party to which the edge takes one of a name.
func (e *node) as(ctx context.Context, name string) (*edge.Actor, error) {
	return e.node.Authenticate(ctx, edge.Credentials{Token: name})
}

// pass waits while the edge is frozen.
func (e *node) pass() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.frozen {
		e.moved.Wait()
	}
}

// freeze stops the edge as far as anybody can see: nothing leaves it, nothing gets in; thawed, it continues.
func (e *node) freeze(frozen bool) {
	e.mu.Lock()
	e.frozen = frozen
	e.moved.Broadcast()
	e.mu.Unlock()
	hold(e.log, frozen, frozen)
	hold(e.pres, frozen, frozen)
}

// hold keeps what is written on a link on its way, and what comes from being read, or lets it go on.
func hold(l *faultnet.Link, out, in bool) {
	l.Delay(out)
	l.HoldReads(in)
}

// cutOff ends a link's connections, and none comes to be. late: what was on its way arrives when it is no longer held;
// else it is lost.
func cutOff(l *faultnet.Link, late bool) {
	if !late {
		l.Cut()
		return
	}
	l.Refuse(true)
	l.Strand()
}

// kill cuts the edge off permanently: it runs on for a while in the belief that it lives. What it has written is lost,
// or arrives late.
func (w *world) kill(e *node, late time.Duration) {
	e.dead.Store(true)
	e.die()
	if e.dials != nil {
		e.dials.Stop()
	}
	cutOff(e.log, late > 0)
	cutOff(e.pres, late > 0)
	for _, d := range w.doorsOf(e) {
		d.lose(0)
	}
	w.zombies.Go(func() {
		<-time.After(late)
		hold(e.log, false, false)
		hold(e.pres, false, false)
		<-time.After(max(2*lease-late, 100*time.Millisecond)) // let the zombie do what zombies do
		w.say("%s is gone", e.id)
		e.gone.Store(true)
		e.close()
	})
}

func (e *node) close() {
	e.freeze(false)
	e.die()
	if e.dials != nil {
		e.dials.Stop()
	}
	e.node.Close()
	if e.dials != nil {
		e.dials.Wait()
	}
	if e.asked != nil {
		e.asked.Close()
	}
	e.broker.Close()
	_ = e.store.Close() // nothing is under way any more
	e.log.Close()
	e.pres.Close()
}

func (w *world) all() []*node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*node(nil), w.edges...)
}

// living returns the edges that were not killed.
func (w *world) living() []*node {
	var out []*node
	for _, e := range w.all() {
		if !e.dead.Load() {
			out = append(out, e)
		}
	}
	return out
}
