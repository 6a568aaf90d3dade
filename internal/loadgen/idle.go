package loadgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
)

// CrowdConfig says which agents only hold connections. Edges and Agents are required.
type CrowdConfig struct {
	Edges  []string // WebSocket addresses; agents are spread over them
	Access          // of every agent
	Name   string   // begins every agent's id
	First  int      // number of the first of them
	Agents int

	Dialing int // agents that connect at a time; 64 if zero
}

// Check tells what makes no sense, nil where all does.
func (c CrowdConfig) Check() error {
	if c.Agents < 1 || c.First < 0 || c.Dialing < 0 {
		return errors.New("there must be at least one agent, and one that connects at a time")
	}
	return checkEdges(c.Edges)
}

// Crowd is agents that are connected and say nothing.
type Crowd struct {
	conns   []*Conn
	readers sync.WaitGroup
	over    atomic.Bool
	lost    atomic.Int64
}

const perSource = 10000

// smallBuffer is what an agent that hears next to nothing reads into.
const smallBuffer = 512

// Gather connects agents and returns when all are. ctx bounds that alone. The caller owes a call of Close, unless
// there is an error.
func Gather(ctx context.Context, cfg CrowdConfig) (*Crowd, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	c := &Crowd{conns: make([]*Conn, cfg.Agents)}
	all := make([]int, cfg.Agents)
	for i := range all {
		all[i] = i
	}
	var taken atomic.Bool
	err := some(all, cmp.Or(cfg.Dialing, dialing), func(i int) error {
		k := cfg.First + i
		t := Target{Edge: cfg.Edges[k%len(cfg.Edges)], Agent: fmt.Sprintf("%s-%d", cfg.Name, k), Access: cfg.Access, Buffer: smallBuffer}
		t.Source = source(t.Edge, k)
		conn, err := dialAgain(ctx, t, &taken)
		if err != nil {
			return err
		}
		c.conns[i] = conn
		c.readers.Go(func() { c.hold(conn) })
		return nil
	})
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// source returns the local address of the k-th agent: one more for each ten thousand, where the edge is on this
// machine and it has them.
func source(edge string, k int) net.IP {
	u, err := url.Parse(edge)
	if err != nil || runtime.GOOS != "linux" || k < perSource {
		return nil
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() || ip.To4() == nil {
		return nil
	}
	return net.IPv4(127, 0, 1, byte(k/perSource))
}

// hold answers pings until the connection ends.
func (c *Crowd) hold(conn *Conn) {
	for {
		if _, err := conn.Next(); err != nil {
			if !c.over.Load() {
				c.lost.Add(1)
			}
			return
		}
	}
}

// Lost returns how many connections have ended by themselves.
func (c *Crowd) Lost() int64 { return c.lost.Load() }

// Close says goodbye for all, and returns when nothing is left.
func (c *Crowd) Close() {
	c.over.Store(true)
	_ = each(c.conns, func(conn *Conn) error {
		if conn != nil {
			conn.Close()
		}
		return nil
	})
	c.readers.Wait()
}
