package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/presence"
)

// cluster is the log, presence and edges of `agora dev`.
type cluster struct {
	run      *devRun
	log      *slog.Logger
	nats     *natsd.Server
	presence *presence.Server
	failed   chan error // the first server that ended by itself
	places   []places   // of the edges' ports

	mu    sync.Mutex    // guards the fields below
	edges []*edgeServer // nil for one that was killed
	left  []*port       // the admin ports of those that were killed
}

// startCluster returns once agents can connect to every edge.
func startCluster(ctx context.Context, o *devRun, log *slog.Logger) (*cluster, error) {
	c := &cluster{
		run: o, log: log, failed: make(chan error, 1), places: make([]places, o.Edges), edges: make([]*edgeServer, o.Edges), left: make([]*port, o.Edges),
	}
	o.Server.Turns.AtOnce = runtime.GOMAXPROCS(0) // what it asks of log and presence is done by this process as well
	for k := range c.edges {                      // before anything else: a port that is taken is the commonest mistake
		e, err := o.listen(k, log, c.fail)
		if err != nil {
			c.close()
			return nil, err
		}
		c.edges[k], c.places[k] = e, e.ports.places()
	}
	var err error
	if c.presence, err = presence.Embed(); err != nil {
		c.close()
		return nil, fmt.Errorf("presence: %w", err)
	}
	if c.nats, err = natsd.Embed(ctx, natsd.Config{Nodes: 1, Dir: o.Data, Log: log}); err != nil {
		c.close()
		return nil, fmt.Errorf("log: %w", err)
	}
	if err := o.clusterKey(); err != nil {
		c.close()
		return nil, fmt.Errorf("p2p.cluster-key: %w", err)
	}
	errs := make([]error, o.Edges)
	var starting sync.WaitGroup
	for k, e := range c.edges {
		starting.Go(func() { errs[k] = c.startEdge(ctx, e, o) })
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// startEdge starts an edge on the cluster's own log and presence.
func (c *cluster) startEdge(ctx context.Context, e *edgeServer, o *devRun) error {
	p := plan{Settings: &o.Settings, again: o.again, auth: o.Auth.Config(e.log), broker: o.Broker(e.name, e.log), presence: o.Settings.Presence(e.log), peers: o.peers(e.name), control: c.control()}
	p.broker.Options = append(p.broker.Options, c.nats.Option(0))
	var err error
	if p.presence.Client, err = presence.Dial("redis://" + c.presence.Addr()); err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	if err := e.start(ctx, p); err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	return nil
}

// fail notes that a server ended by itself.
func (c *cluster) fail(err error) {
	select {
	case c.failed <- err:
	default: // the first one is enough
	}
}

// wait returns when the process is asked to end, or a server failed.
func (c *cluster) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-c.failed:
		return err
	}
}

// close ends what has been started, and waits for it.
func (c *cluster) close() {
	c.each((*edgeServer).close)
	c.mu.Lock()
	for _, p := range c.left {
		if p != nil {
			p.close()
		}
	}
	c.mu.Unlock()
	if c.nats != nil {
		c.nats.Shutdown()
	}
	if c.presence != nil {
		c.presence.Close()
	}
}

// each does something with every edge that there is, all at once.
func (c *cluster) each(do func(*edgeServer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all sync.WaitGroup
	for _, e := range c.edges {
		if e != nil {
			all.Go(func() { do(e) })
		}
	}
	all.Wait()
}
