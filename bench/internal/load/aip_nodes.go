package load

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/agora-relay/agora/bench/internal/aip"
	"github.com/agora-relay/agora/bench/internal/wire"
)

// Nodes registers nodes that nobody calls with one server, each by a connection of its own, as nodes are programs of their own; they give a sign of life every
// ten seconds. It returns the memory that the server has more than before, per node: resident, some seconds after the last has registered.
func Nodes(ctx context.Context, t Called, name string, nodes int, cfg Config) (Result, error) {
	c := &crew{target: t, name: name, cfg: cfg}
	defer c.close()
	before, usage := t.ServerRSS(0), t.Usage()
	began := time.Now()
	var beating sync.WaitGroup
	defer beating.Wait()
	living, die := context.WithCancel(ctx)
	defer die()
	err := parallel(nodes, func(i int) error {
		a, err := c.node(living, t, name+"n"+strconv.Itoa(i))
		if err == nil {
			beating.Go(func() { c.beats(living, a) })
		}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	took := time.Since(began)
	err = pause(ctx, cfg.Warm+cfg.Time+settles)
	after := t.Usage()
	r := Result{
		Rate:      float64(nodes) / took.Seconds(),
		ServerCPU: us(after.CPU-usage.CPU) / float64(nodes),
		EdgeCPU:   us(after.Edges-usage.Edges) / float64(nodes),
		Memory:    float64(t.ServerRSS(0)-before) / float64(nodes),
		RSS:       float64(after.RSS),
		Sent:      int64(nodes),
	}
	die()
	beating.Wait()
	c.finish(&r)
	return r, err
}

// settles is how long nodes are left alone besides, before memory is looked at: each has given signs of life.
const settles = 15 * time.Second

// idleNode is a node that nobody calls, as a member of a crew.
type idleNode struct {
	Agent // none
	id    string
	*aip.Client
	server *grpc.Server
	served chan struct{}
}

// Close implements Agent.
func (n *idleNode) Close() error {
	n.server.Stop()
	<-n.served
	return n.Client.Close()
}

// node starts a node and registers it. Every other one is a toolbox.
func (c *crew) node(ctx context.Context, t Called, id string) (*idleNode, error) {
	a, err := t.AIP(0)
	if err != nil {
		return nil, err
	}
	if !a.Gateway() {
		a.Close()
		return nil, wire.ErrNone
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.Close()
		return nil, err
	}
	n := &idleNode{id: id, Client: a, server: aip.NewServer(), served: make(chan struct{})}
	go func() { // Close waits for it
		defer close(n.served)
		_ = n.server.Serve(l) // which Close ends
	}()
	c.mu.Lock()
	register := a.RegisterAgent
	if c.members = append(c.members, &member{Agent: n, id: id}); len(c.members)%2 == 0 {
		register = a.RegisterToolbox
	}
	c.mu.Unlock()
	return n, register(ctx, id, l.Addr().String())
}

// beats gives the signs of life of a node, until ctx is over.
func (c *crew) beats(ctx context.Context, n *idleNode) {
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
