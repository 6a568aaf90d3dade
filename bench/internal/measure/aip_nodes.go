package measure

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/agora-relay/agora/bench/internal/aip"
	"github.com/agora-relay/agora/internal/loadgen"
)

// Nodes registers nodes that nobody calls with one server, each by a connection of its own, as nodes are programs of
// their own; they give a sign of life every ten seconds. It returns the memory that the server has more than before,
// per node: resident, some seconds after the last has registered.
func Nodes(ctx context.Context, t Called, name string, nodes int, cfg Config) (Result, error) {
	c := &calls{target: t, cfg: cfg}
	before, usage, began := t.ServerRSS(0), t.Usage(), time.Now()
	var living sync.WaitGroup
	defer living.Wait()
	ctx, die := context.WithCancel(ctx)
	defer die()
	for i := range nodes {
		n, err := register(ctx, t, fmt.Sprintf("%sn%d", name, i), i%2 == 1)
		if err != nil {
			return Result{}, err
		}
		living.Go(func() { c.live(ctx, n) })
	}
	took := time.Since(began)
	err := pause(ctx, cfg.Warm+cfg.Time+settles)
	after, n := t.Usage(), float64(nodes)
	r := Result{
		Rate:      n / took.Seconds(),
		ServerCPU: us(after.CPU-usage.CPU, n),
		EdgeCPU:   us(after.Edges-usage.Edges, n),
		Memory:    float64(t.ServerRSS(0)-before) / n,
		RSS:       float64(after.RSS),
		Sent:      int64(nodes),
	}
	die()
	living.Wait()
	c.finish(&r)
	return r, err
}

// settles is how long nodes are left alone besides, before memory is looked at: each has given signs of life.
const settles = 15 * time.Second

// node is a node that nobody calls.
type node struct {
	id string
	*aip.Client
	server *grpc.Server
	served chan struct{}
}

// Close ends the node's own server, and its connection.
func (n *node) Close() error {
	n.server.Stop()
	<-n.served
	return n.Client.Close()
}

// register starts a node and registers it, as a toolbox or as an agent.
func register(ctx context.Context, t Called, id string, toolbox bool) (*node, error) {
	a, err := t.AIP(0)
	if err != nil {
		return nil, err
	}
	if !a.Gateway() {
		_ = a.Close() // it is not needed
		return nil, loadgen.ErrNone
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = a.Close() // the error says more
		return nil, err
	}
	n := &node{id: id, Client: a, server: aip.NewServer(), served: make(chan struct{})}
	go func() { // Close waits for it
		defer close(n.served)
		_ = n.server.Serve(l) // which Close ends
	}()
	call := a.RegisterAgent
	if toolbox {
		call = a.RegisterToolbox
	}
	if err := call(ctx, id, l.Addr().String()); err != nil {
		_ = n.Close() // the error says more
		return nil, err
	}
	return n, nil
}

// live gives the signs of life of a node, until ctx is over, and closes it.
func (c *calls) live(ctx context.Context, n *node) {
	defer n.Close()
	every := time.NewTicker(10 * time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		if err := n.Heartbeat(ctx, n.id); err != nil && ctx.Err() == nil {
			c.refused(fmt.Sprintf("heartbeat of %s: %v", n.id, err))
			return
		}
	}
}
