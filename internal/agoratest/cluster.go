package agoratest

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/presence"
)

// Options say what cluster a test needs. The zero value is three edges on one
// NATS node and an embedded presence server, with settings so short that a test
// need not wait.
type Options struct {
	Edges  int  // 3
	Nodes  int  // of NATS: 1, or 3 with every stream on all of them; 1
	Shards int  // of mailboxes, of spaces, and of boxes; 1
	Redis  bool // a real redis-server, which is then in Cluster.Redis

	Node       edge.Config   // what is set wins; ID, Broker and Presence are the cluster's own
	Door       ws.Config     // of every edge
	Grace      time.Duration // session.grace; 1s
	MaxMembers int           // of a space; 4096
	EmptyGrace time.Duration // how long an empty space stays; 1m
	Audit      time.Duration // between two checks of every inbox; 1s

	Approvals bool // edges keep what agents ask approval for

	Lines  bool            // edges have a door for agents that they dial: see LineNode
	Clocks []time.Duration // how far the clock of edge k is ahead; right where there is none
	Leases []time.Duration // of edge k; Node.Lease where there is none, or zero

	Hook redis.Hook // of every edge's client of presence; may be nil

	Tune func(k int, c *edge.Config) // changes more of edge k's settings before it starts; may be nil

	Doors []func(Entry) (Opened, error) // opened at each edge, beside that for WebSockets
}

func (o Options) withDefaults() Options {
	o.Edges = cmp.Or(o.Edges, 3)
	o.Nodes = cmp.Or(o.Nodes, 1)
	o.Grace = cmp.Or(o.Grace, time.Second)
	o.Audit = cmp.Or(o.Audit, time.Second)
	o.Node.Lease = cmp.Or(o.Node.Lease, time.Minute)         // no pause of a busy machine ends it; a test that waits for the end of one asks for less, of that edge alone
	o.Node.Heartbeat = cmp.Or(o.Node.Heartbeat, time.Second) // where Go clients connect it is to be long: they give up an edge that is silent for one and a half
	o.Node.Timeout = cmp.Or(o.Node.Timeout, patience)
	o.Node.Answer = cmp.Or(o.Node.Answer, patience)
	o.Node.Probe = cmp.Or(o.Node.Probe, 10*time.Second)
	o.Node.Confirm = cmp.Or(o.Node.Confirm, 100*time.Millisecond)
	o.Node.MaxAge = cmp.Or(o.Node.MaxAge, 10*time.Minute)
	o.Node.MaxRecords = cmp.Or(o.Node.MaxRecords, 4096)
	if o.Node.Auth == nil {
		o.Node.Auth = auth.None()
	}
	return o
}

// Cluster is a cluster of a test's own. Its methods are for
// the test's goroutine, but for URL, HTTP, Edges, Node and Door.
type Cluster struct {
	Redis *servers.RedisServer // nil where presence is embedded

	t        testing.TB
	opts     Options
	nats     *natsd.Server
	presence string // host and port
	log      *slog.Logger
	closing  sync.WaitGroup // edges that were cut and end by themselves
	over     chan struct{}  // closed when the cluster stops
	started  atomic.Int64   // edges: numbers them

	mu    sync.Mutex // guards edges
	edges []*member
}

// silentAfter is how long JetStream's answer is waited for before it is asked for again.
const silentAfter = 5 * time.Second

// patience is how long anything may take before a test fails.
var patience = await.Long

// Start starts a cluster and stops it when the test is over.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := &Cluster{t: t, opts: o.withDefaults(), log: logger(t), over: make(chan struct{})}
	var err error
	if c.nats, err = natsd.Embed(ctx, natsd.Config{Nodes: c.opts.Nodes}); err != nil {
		t.Fatalf("start nats: %v", err)
	}
	t.Cleanup(c.nats.Shutdown)
	c.startPresence()
	t.Cleanup(c.stop)
	for range c.opts.Edges {
		c.AddEdge()
	}
	return c
}

func (c *Cluster) startPresence() {
	c.t.Helper()
	if c.opts.Redis {
		c.Redis = servers.Redis(c.t)
		c.presence = c.Redis.Addr()
		return
	}
	s, err := presence.Embed()
	if err != nil {
		c.t.Fatalf("start presence: %v", err)
	}
	c.t.Cleanup(s.Close)
	c.presence = s.Addr()
}

// logger shows what goes wrong beside the test's own words.
func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

// stop ends what is left, all edges at once.
func (c *Cluster) stop() {
	close(c.over)
	for _, e := range c.all() {
		c.closing.Go(e.close)
	}
	c.closing.Wait()
}

func (c *Cluster) all() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*member(nil), c.edges...)
}

func (c *Cluster) edge(k int) *member { return c.all()[k] }

// Size returns how many edges there are, stopped ones included.
func (c *Cluster) Size() int { return len(c.all()) }

// Edges returns the numbers of those that were neither stopped nor cut.
func (c *Cluster) Edges() []int {
	var live []int
	for k, e := range c.all() {
		if !e.gone.Load() {
			live = append(live, k)
		}
	}
	return live
}

// URL returns where agents of edge k connect.
func (c *Cluster) URL(k int) string { return c.edge(k).url }

// HTTP returns the beginning of the URLs of edge k for programs that speak HTTP.
func (c *Cluster) HTTP(k int) string {
	return "http" + strings.TrimSuffix(strings.TrimPrefix(c.URL(k), "ws"), "/ws")
}

// URLs returns where agents connect, at the edges that were neither stopped nor cut.
func (c *Cluster) URLs() []string {
	var urls []string
	for _, k := range c.Edges() {
		urls = append(urls, c.URL(k))
	}
	return urls
}

// Node returns the core of edge k.
func (c *Cluster) Node(k int) *edge.Node { return c.edge(k).node }

// Door returns the door of edge k.
func (c *Cluster) Door(k int) *ws.Door { return c.edge(k).door }

// Lines returns the door of edge k for agents that it dials, with Options.Lines.
func (c *Cluster) Lines(k int) *LineDoor { return c.edge(k).lines }

// Broker returns the log as edge k has it.
func (c *Cluster) Broker(k int) *broker.Broker { return c.edge(k).broker }

// AddEdge starts one more edge and returns its number.
func (c *Cluster) AddEdge() int {
	c.t.Helper()
	return c.add("", 0)
}

// AddDoomed starts one more edge, whose lease is so long, and returns its number: it is to die, and its agents come
// back when that is over.
func (c *Cluster) AddDoomed(lease time.Duration) int {
	c.t.Helper()
	return c.add("", lease)
}

// AddTwin starts an edge under the id of edge k, whose lease must be over, and returns its number.
func (c *Cluster) AddTwin(k int) int {
	c.t.Helper()
	return c.add(c.Node(k).Config().ID, 0)
}

// add starts an edge under an id, with a lease: of its own, and what its place has, where there is none.
func (c *Cluster) add(id string, lease time.Duration) int {
	c.t.Helper()
	k := int(c.started.Add(1) - 1) // scenes add edges at the same time
	e, err := c.startEdge(k, cmp.Or(id, "edge-"+strconv.Itoa(k)), cmp.Or(lease, c.lease(k)))
	if err != nil {
		c.t.Fatalf("start an edge: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.edges = append(c.edges, e)
	return len(c.edges) - 1
}

// StopEdge drains edge k and stops it.
func (c *Cluster) StopEdge(k int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e := c.edge(k)
	e.gone.Store(true)
	e.drain(ctx)
	if ctx.Err() != nil {
		c.t.Errorf("edge %d did not drain within %v", k, patience)
	}
	e.close()
}

// CutEdge cuts every connection of edge k at once, to agents, log and
// presence, and it never gets another: it can tell nobody, its lease runs out,
// and what it had in hand is lost. Inside, it runs on in the belief that it
// lives, like a process whose machine has lost its network, until its own lease stops it.
func (c *Cluster) CutEdge(k int) {
	e := c.edge(k)
	e.gone.Store(true)
	e.cutOff()
	c.closing.Go(func() {
		select {
		case <-time.After(2 * e.node.Config().Lease): // let the zombie do what zombies do
		case <-c.over:
		}
		e.close()
	})
}

// LapseEdge is like [Cluster.CutEdge], and ends the edge's lease at once, as presence does when that was not renewed in
// time.
func (c *Cluster) LapseEdge(k int) {
	c.t.Helper()
	c.CutEdge(k)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rdb := redis.NewClient(&redis.Options{Addr: c.presence})
	defer rdb.Close()
	store, id := presence.New(presence.Config{Client: rdb}), c.Node(k).Config().ID
	all, err := store.Leases.Edges(ctx)
	for _, h := range all {
		if err == nil && h.Edge == id {
			err = store.Leases.Resign(ctx, h)
		}
	}
	if err != nil {
		c.t.Fatalf("end the lease of edge %d: %v", k, err)
	}
}

// ParalyseEdge cuts edge k off like [Cluster.CutEdge], but for a while: [Cluster.MendEdge] ends it.
func (c *Cluster) ParalyseEdge(k int) { c.edge(k).cutOff() }

// MendEdge lets an edge that was paralysed, or cut off from the log, connect again.
func (c *Cluster) MendEdge(k int) {
	c.edge(k).net.each(func(l *faultnet.Link) { l.Refuse(false) })
}

// CutLog cuts edge k off from the log alone, until [Cluster.MendEdge].
func (c *Cluster) CutLog(k int) { c.edge(k).net.log.Cut() }

// CutPresence cuts edge k off from presence alone, until [Cluster.MendEdge].
func (c *Cluster) CutPresence(k int) {
	e := c.edge(k)
	e.cut.Store(true)
	e.net.presence.Cut()
}

// HoldLog keeps what edge k writes to the log from arriving, as a log does that is too slow, or lets it arrive. No
// writer waits: a client of the log that waits to write has everybody else wait who uses it.
func (c *Cluster) HoldLog(k int, held bool) { c.edge(k).net.log.Delay(held) }

// HoldPresence stops everything that edge k asks of presence, or lets it go on.
func (c *Cluster) HoldPresence(k int, held bool) { c.edge(k).net.presence.HoldWrites(held) }

// Freeze stops all that edge k reads and writes, to every end, or wakes it: it is alive to the one who looks
// at its connections, and does nothing.
func (c *Cluster) Freeze(k int, frozen bool) { c.edge(k).net.freeze(frozen) }

// Streams returns the names of the log's streams.
func (c *Cluster) Streams() []string {
	c.t.Helper()
	var names struct{ Streams []string }
	c.api("STREAM.NAMES", &names, func() bool { return true })
	return names.Streams
}

// keeps reports whether the log has anything that was stored before a time, of what it keeps no longer than messages.
func (c *Cluster) keeps(before time.Time) bool {
	c.t.Helper()
	for _, name := range c.Streams() {
		var info struct {
			Config struct {
				MaxAge time.Duration `json:"max_age"`
			}
			State struct {
				Messages int
				First    time.Time `json:"first_ts"`
			}
		}
		c.api("STREAM.INFO."+name, &info, func() bool { return true })
		if info.Config.MaxAge == c.opts.Node.MaxAge && info.State.Messages > 0 && info.State.First.Before(before) {
			return true
		}
	}
	return false
}

// StepDown has a stream elect another leader.
func (c *Cluster) StepDown(stream string) {
	c.t.Helper()
	var done struct {
		Success bool
		Error   json.RawMessage
	}
	c.api("STREAM.LEADER.STEPDOWN."+stream, &done, func() bool { return done.Success })
	if !done.Success {
		c.t.Errorf("step down of %s: %s", stream, done.Error)
	}
}

// api asks JetStream until the answer is good: a stream may have no leader at the moment.
func (c *Cluster) api(subject string, answer any, good func() bool) {
	c.t.Helper()
	nc, err := nats.Connect(strings.Split(c.nats.URL(), ",")[0], nats.Timeout(patience))
	if err != nil {
		c.t.Fatalf("connect to nats: %v", err)
	}
	defer nc.Close()
	await.Within(patience, func() bool {
		var m *nats.Msg
		if m, err = nc.Request("$JS.API."+subject, nil, silentAfter); err == nil {
			err = json.Unmarshal(m.Data, answer)
		}
		return err == nil && good()
	})
	if err != nil {
		c.t.Fatalf("%s: %v", subject, err)
	}
}
