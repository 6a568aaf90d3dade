package loadgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// CrowdConfig says which agents only hold connections. Agents is required, and System or Edges.
type CrowdConfig struct {
	System System   // where they are; Agora, with the two fields below, if nil
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
	return checkSystem(c.system())
}

func (c CrowdConfig) system() System {
	if c.System != nil {
		return c.System
	}
	return Agora{Edges: c.Edges, Access: c.Access}
}

// Crowd is agents that are connected and say nothing.
type Crowd struct {
	conns   []Agent
	readers sync.WaitGroup
	over    atomic.Bool
	lost    atomic.Int64
}

// Gather connects agents and returns when all are. ctx bounds that alone. The caller owes a call of Close, unless
// there is an error.
func Gather(ctx context.Context, cfg CrowdConfig) (*Crowd, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	system := cfg.system()
	c := &Crowd{conns: make([]Agent, cfg.Agents)}
	all := make([]int, cfg.Agents)
	for i := range all {
		all[i] = i
	}
	var taken atomic.Bool
	err := some(all, cmp.Or(cfg.Dialing, dialing), func(i int) error {
		k := cfg.First + i
		conn, err := dialAgain(ctx, &taken, func() (Agent, error) {
			return system.Dial(ctx, Idles, fmt.Sprintf("%s-%d", cfg.Name, k), k%system.Servers())
		})
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

// hold answers pings until the connection ends.
func (c *Crowd) hold(conn Agent) {
	if _ = conn.Receive(Silent{}); !c.over.Load() { // why it ended is not told
		c.lost.Add(1)
	}
}

// Lost returns how many connections have ended by themselves.
func (c *Crowd) Lost() int64 { return c.lost.Load() }

// Close says goodbye for all, and returns when nothing is left.
func (c *Crowd) Close() {
	c.over.Store(true)
	_ = each(c.conns, func(conn Agent) error {
		if conn != nil {
			_ = conn.Close() // what has ended before is closed
		}
		return nil
	})
	c.readers.Wait()
}
