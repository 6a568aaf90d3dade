package agoratest

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/faultnet"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/presence"
)

// member is one edge of a cluster, as the command would wire it.
type member struct {
	url    string
	net    links
	broker *broker.Broker
	store  *presence.Store
	node   *edge.Node
	asked  *approval.Approvals // nil without Options.Approvals
	door   *ws.Door
	lines  *LineDoor // nil without Options.Lines
	more   []Opened  // other doors
	http   *http.Server
	serve  sync.WaitGroup
	once   sync.Once
	gone   atomic.Bool // stopped or cut: no agent should come
	cut    atomic.Bool // from presence, at some time
}

// links are every connection of one edge, by what they lead to. Cutting all of them is what the rest of the cluster
// sees of an edge that dies.
type links struct{ agents, log, presence *faultnet.Link }

func newLinks() links { return links{faultnet.New(), faultnet.New(), faultnet.New()} }

// each does something with all of them: with the agents' last, as an edge that has lost those says so to presence where
// it can.
func (l links) each(do func(*faultnet.Link)) {
	do(l.presence)
	do(l.log)
	do(l.agents)
}

// freeze stops all that is read and written, or lets it go on.
func (l links) freeze(still bool) {
	l.each(func(l *faultnet.Link) {
		l.HoldReads(still)
		l.HoldWrites(still)
	})
}

// cutOff cuts every connection of the edge, until it is mended.
func (e *member) cutOff() {
	e.cut.Store(true)
	e.net.each((*faultnet.Link).Cut)
}

// startEdge starts edge k under an id, with a lease.
func (c *Cluster) startEdge(k int, id string, lease time.Duration) (*member, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e := &member{net: newLinks()}
	var err error
	if e.broker, err = broker.Connect(ctx, c.brokerConfig(k, id, e.net.log)); err != nil {
		return nil, err
	}
	e.store = presence.New(c.presenceConfig(lease, e))
	cfg := c.opts.Node
	cfg.Lease = lease
	cfg.ID, cfg.Broker, cfg.Presence, cfg.Log = id, e.broker, e.store, c.log.With("edge", id)
	if c.opts.Tune != nil {
		c.opts.Tune(k, &cfg)
	}
	if cfg.Dialer == nil {
		cfg.Dialer = dial.New(dial.Config{Connect: e.net.agents.DialContext})
	}
	if c.opts.Approvals {
		e.asked = approval.New(approval.Config{Book: e.broker.Book(), Now: e.broker.Now, Log: cfg.Log})
		cfg.Approvals = e.asked
	}
	if e.node, err = edge.Start(ctx, cfg); err != nil {
		return nil, err
	}
	doorCfg := c.opts.Door
	doorCfg.Log = c.log.With("edge", id)
	e.door = ws.New(e.node, doorCfg)
	if c.opts.Lines {
		e.lines = NewLineDoor(e.node)
	}
	if err := e.listen(c.opts.Doors); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (c *Cluster) brokerConfig(k int, id string, l *faultnet.Link) broker.Config {
	return broker.Config{
		URL: c.nats.URL(), Name: id,
		Options:  []nats.Option{nats.SetCustomDialer(l), nats.ReconnectWait(50 * time.Millisecond)},
		Replicas: c.opts.Nodes, Memory: true, Shards: c.opts.Shards,
		MaxAge: c.opts.Node.MaxAge, MaxRecords: c.opts.Node.MaxRecords, ShardBytes: 64 << 20,
		GiveUp: patience, Election: patience, // nothing is refused because the machine is slow
		Audit: c.opts.Audit, Now: c.clock(k), Log: c.log.With("edge", id),
	}
}

// clock is the machine's clock of edge k; nil is the right one.
func (c *Cluster) clock(k int) func() time.Time {
	if k >= len(c.opts.Clocks) || c.opts.Clocks[k] == 0 {
		return nil
	}
	return func() time.Time { return time.Now().Add(c.opts.Clocks[k]) }
}

// lease is that of edge k, where it has none of its own.
func (c *Cluster) lease(k int) time.Duration {
	if k >= len(c.opts.Leases) {
		return c.opts.Node.Lease
	}
	return cmp.Or(c.opts.Leases[k], c.opts.Node.Lease)
}

func (c *Cluster) presenceConfig(lease time.Duration, e *member) presence.Config {
	var user, password string
	if c.Redis != nil {
		user, password = servers.EdgeUser, servers.EdgePassword
	}
	client := redis.NewClient(&redis.Options{
		Addr: c.presence, Username: user, Password: password, Dialer: e.net.presence.DialContext, MaxRetries: 1, DialerRetries: 1,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, ContextTimeoutEnabled: true,
	})
	if c.opts.Hook != nil {
		client.AddHook(c.opts.Hook)
	}
	return presence.Config{
		Client: client, Lease: lease, Grace: c.opts.Grace, Known: c.opts.Node.MaxAge,
		MaxMembers: c.opts.MaxMembers, EmptyGrace: c.opts.EmptyGrace, Log: c.log,
	}
}

// listen opens the edge's doors to agents.
func (e *member) listen(more []func(Entry) (Opened, error)) error {
	mux := http.NewServeMux()
	mux.Handle("/ws", e.door)
	e.http = &http.Server{Handler: mux, ReadHeaderTimeout: patience, ConnContext: web.WithConn, Protocols: new(http.Protocols)}
	e.http.Protocols.SetHTTP1(true)
	e.http.Protocols.SetUnencryptedHTTP2(true)
	l, err := e.Listen()
	if err != nil {
		return err
	}
	e.url = "ws://" + l.Addr().String() + "/ws"
	for _, open := range more {
		d, err := open(Entry{e.node, mux, e.Listen})
		if err != nil {
			l.Close()
			return err
		}
		e.more = append(e.more, d)
	}
	e.serve.Go(func() { _ = e.http.Serve(l) }) // ends with close
	return nil
}

// Listen opens a port of the edge's, whose connections are cut with the edge.
func (e *member) Listen() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return e.net.agents.Listen(l), nil
}

// drain empties the edge until ctx is over.
func (e *member) drain(ctx context.Context) {
	var all sync.WaitGroup
	for _, d := range e.more {
		all.Go(func() { d.Drain(ctx) })
	}
	e.node.Drain(ctx)
	all.Wait()
}

// close ends everything of the edge and waits for it. Idempotent.
func (e *member) close() {
	e.once.Do(func() {
		e.net.freeze(false)
		_ = e.http.Close() // the listener's error says nothing here
		e.door.Close()
		if e.lines != nil {
			e.lines.Stop()
		}
		for _, d := range e.more {
			d.Close()
		}
		e.node.Close()
		if e.asked != nil {
			e.asked.Close()
		}
		e.door.Wait()
		if e.lines != nil {
			e.lines.Wait()
		}
		for _, d := range e.more {
			d.Wait()
		}
		e.broker.Close()
		_ = e.store.Close() // nothing is under way any more
		e.serve.Wait()
		if e.cut.Load() {
			<-time.After(1100 * time.Millisecond) // the presence client has a goroutine that looks for its end once a second
		}
	})
}
