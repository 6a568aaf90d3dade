package aip

import (
	"sync"
	"time"

	"github.com/agora-relay/agora"
)

// callLimits bounds the calls under way at an edge, by and for each agent.
type callLimits struct {
	limits func() (agent, all int)

	mu  sync.Mutex // guards the fields below
	of  map[agora.Address]int
	all int
}

// enter counts a call. RATE_LIMITED where there are too many. leave is to be called when it is over.
func (c *callLimits) enter(tenant string, as, to agora.AgentID) (leave func(), err error) {
	agent, all := c.limits()
	by, with := agora.ToAgent(tenant, as), agora.ToAgent(tenant, to)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= all {
		return nil, &agora.Error{Code: agora.RateLimited, Message: "this edge has as many calls under way as it takes", RetryAfter: time.Second}
	}
	for _, a := range []agora.Address{by, with} {
		if c.of[a] >= agent {
			return nil, &agora.Error{Code: agora.RateLimited, Message: "'" + string(a.Agent) + "' has as many calls under way at this edge as it may", RetryAfter: time.Second}
		}
	}
	if c.of == nil {
		c.of = map[agora.Address]int{}
	}
	c.all++
	c.of[by]++
	c.of[with]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		c.less(by)
		c.less(with)
	}, nil
}

// less counts one call less of an agent; mu is held.
func (c *callLimits) less(a agora.Address) {
	if c.of[a]--; c.of[a] == 0 {
		delete(c.of, a)
	}
}
