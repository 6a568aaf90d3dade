package load

import (
	"context"
	"time"

	"github.com/agora-relay/agora/bench/internal/wire"
)

// Idle connects agents that say nothing, and returns the memory that all servers, and those that agents connect to,
// have more than before, per agent: resident, some seconds after the last has connected.
func Idle(ctx context.Context, t Target, name string, agents int, cfg Config) (Result, error) {
	c := &crew{target: t, name: name, cfg: cfg}
	defer c.close()
	before := t.Usage()
	began := time.Now()
	members, err := c.newMembers(agents, Idles, func(i int) int { return i })
	if err != nil {
		return Result{}, err
	}
	took := time.Since(began)
	for _, m := range members {
		c.listen(m, wire.Handler{})
	}
	err = pause(ctx, cfg.Warm+cfg.Time)
	after := t.Usage()
	r := Result{
		Rate:       float64(agents) / took.Seconds(),
		ServerCPU:  us(after.CPU-before.CPU) / float64(agents),
		EdgeCPU:    us(after.Edges-before.Edges) / float64(agents),
		Memory:     float64(after.RSS-before.RSS) / float64(agents),
		EdgeMemory: float64(after.Held-before.Held) / float64(agents),
		RSS:        float64(after.RSS),
	}
	c.finish(&r)
	return r, err
}
