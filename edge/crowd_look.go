package edge

import (
	"context"
	"math"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

const (
	lookEvery  = 250 * time.Millisecond // between two looks at what the edge holds
	worthwhile = 16 << 10               // bytes below which closing a connection frees nothing
)

// Watch looks at what is held until ctx is over.
func (c *Crowd) Watch(ctx context.Context) {
	for pause.For(ctx, lookEvery) {
		c.look()
	}
}

// seen is a seat that is looked at, and who has it.
type seen struct {
	seat  *Seat
	guest Guest
}

// look adds up what is held, and draws the lines for the time until the next look.
func (c *Crowd) look() {
	total, going := c.sum()
	c.held.Store(total)
	c.squeeze(total)
	c.draw(total)
	c.evict(total - going)
}

// sum adds up what is held: by nobody in particular, and by the guests that have stirred. Those
// that have come to rest are not looked at again. going is what closes already.
func (c *Crowd) sum() (total, going int64) {
	if c.cfg.Others != nil {
		total = c.cfg.Others()
	}
	lively := c.takeLively()
	stay := lively[:0]
	for _, at := range lively {
		held, working := at.guest.Held()
		if held == 0 && !working && at.rests() {
			continue
		}
		stay = append(stay, at)
		total += held
		if at.seat.closed {
			going += held
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range stay {
		c.lively = append(c.lively, at.seat)
	}
	return total, going
}

// rests takes a seat whose guest was seen to hold nothing off the lively ones; false when
// it is to stay among them after all.
func (at seen) rests() bool {
	at.seat.stirred.Store(false)
	// Who stirred just before that is not noted, but holds by now what it stirred for.
	held, working := at.guest.Held()
	return held == 0 && !working || at.seat.stirred.Swap(true)
}

// takeLively returns the seats that have stirred, without those that nobody has any more.
func (c *Crowd) takeLively() []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	lively := make([]seen, 0, len(c.lively))
	for _, s := range c.lively {
		if s.guest != nil {
			lively = append(lively, seen{s, s.guest})
		}
	}
	clear(c.lively)
	c.lively = c.lively[:0]
	return lively
}

// last returns the seats that were taken last, up to n of them, the last one first.
func (c *Crowd) last(n int) []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	var last []seen
	for s := c.newest; s != nil && len(last) < n; s = s.before {
		last = append(last, seen{s, s.guest})
	}
	return last
}

// size returns how many seats are taken.
func (c *Crowd) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
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
	over, n := total-c.cfg.Queued, int64(c.size())
	if over <= 0 || n == 0 {
		c.shed.Store(math.MaxUint64)
		return
	}
	some := min(max(n*over/max(c.cfg.Queued/2, 1), 1), n)
	if last := c.last(int(some)); len(last) > 0 {
		c.shed.Store(last[len(last)-1].seat.number)
	}
}

// evict closes connections where the limit is passed by half, the last ones
// first and no more of them than it takes; at one look at most every second one.
func (c *Crowd) evict(total int64) {
	over := total - c.cfg.Queued*3/2
	if over <= 0 {
		return
	}
	for _, at := range c.last((c.size() + 1) / 2) {
		if over <= 0 {
			return
		}
		if at.guest == nil || at.seat.closed {
			continue
		}
		held, _ := at.guest.Held()
		if held < worthwhile {
			continue
		}
		at.seat.closed = true
		c.count.Closed.Add(1)
		over -= held
		at.guest.Close(tooMuch)
	}
}
