package edge

import (
	"context"
	"math"
	"time"
)

const (
	lookEvery  = 250 * time.Millisecond // between two looks at what the edge holds
	worthwhile = 16 << 10               // bytes below which closing a connection frees nothing
)

// Watch looks at what is held until ctx is over.
func (c *Crowd) Watch(ctx context.Context) {
	for pause(ctx, lookEvery) {
		c.look()
	}
}

// look adds up what is held, and draws the lines for the time until the next look.
func (c *Crowd) look() {
	c.list()
	defer clear(c.walk)
	var total, going int64 // going: of those that are closing already
	if c.cfg.Others != nil {
		total = c.cfg.Others()
	}
	held := make([]int64, len(c.walk))
	guests := c.guests()
	for i, s := range c.walk {
		if guests[i] == nil {
			continue
		}
		held[i] = guests[i].Held()
		total += held[i]
		if s.closed {
			going += held[i]
		}
	}
	c.held.Store(total)
	c.squeeze(total)
	c.draw(total)
	c.evict(total-going, held, guests)
}

// list puts the seats that are taken into walk.
func (c *Crowd) list() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.walk = c.walk[:0]
	for e := c.seats.Front(); e != nil; e = e.Next() {
		c.walk = append(c.walk, e.Value.(*Seat))
	}
}

// guests returns who has the seats of walk.
func (c *Crowd) guests() []Guest {
	c.mu.Lock()
	defer c.mu.Unlock()
	guests := make([]Guest, len(c.walk))
	for i, s := range c.walk {
		guests[i] = s.guest
	}
	return guests
}

// squeeze shrinks the queues from half the limit on, so that what they hold
// together settles below it: to nearly nothing where it is reached.
func (c *Crowd) squeeze(total int64) {
	share := int(min(max(2*Whole-2*Whole*total/c.cfg.Queued, 1), Whole))
	if int64(share) == c.share.Swap(int64(share)) {
		return
	}
	if c.cfg.Squeeze != nil {
		c.cfg.Squeeze(share)
	}
}

// draw decides who is shed: nobody at the limit, those that came last beyond
// it, and everybody where it is passed by half.
func (c *Crowd) draw(total int64) {
	over, n := total-c.cfg.Queued, int64(len(c.walk))
	if over <= 0 || n == 0 {
		c.shed.Store(math.MaxUint64)
		return
	}
	some := min(max(n*over/max(c.cfg.Queued/2, 1), 1), n)
	c.shed.Store(c.walk[n-some].number)
}

// evict closes connections where the limit is passed by half, the last ones
// first and no more of them than it takes; at one look at most every second one.
func (c *Crowd) evict(total int64, held []int64, guests []Guest) {
	over := total - c.cfg.Queued*3/2
	for i := len(c.walk) - 1; i >= len(c.walk)/2 && over > 0; i-- {
		if guests[i] == nil || c.walk[i].closed || held[i] < worthwhile {
			continue
		}
		c.walk[i].closed = true
		c.count.Closed.Add(1)
		over -= held[i]
		guests[i].Close(tooMuch)
	}
}
