package load

import (
	"context"
	"fmt"
	"time"

	"github.com/agora-relay/agora/bench/internal/wire"
)

// Asks has agents ask others at another server, each one the same, again as soon as it is answered. Rates count answers, and their
// delay is from question to answer.
func Asks(ctx context.Context, t Target, name string, pairs int, cfg Config) (Result, error) {
	c := &crew{target: t, name: name, cfg: cfg}
	defer c.close()
	askers, err := c.newMembers(pairs, Sends, func(i int) int { return i })
	if err != nil {
		return Result{}, err
	}
	asked, err := c.newMembers(pairs, Receives, func(i int) int { return i + 1 })
	if err != nil {
		return Result{}, err
	}
	for _, m := range asked {
		a, ok := m.Agent.(Asker)
		if !ok {
			return Result{}, wire.ErrNone
		}
		c.readers.Go(func() { c.ended(m, a.Echo()) })
	}
	c.from.Store(time.Now().Add(cfg.Warm).UnixNano())
	c.until.Store(time.Now().Add(cfg.Warm + cfg.Time).UnixNano())
	stop := make(chan struct{})
	for i, m := range askers {
		a, ok := m.Agent.(Asker)
		if !ok {
			return Result{}, wire.ErrNone
		}
		c.write(func() { c.asks(a, m, asked[i].id, stop) })
	}
	r, err := c.measure(ctx, 0)
	close(stop)
	c.writers.Wait() // an agent that is not answered any more ends by its connection's patience, or the caller's
	r.Sent = c.arrivals()
	c.finish(&r)
	return r, err
}

// asks has a member ask until it is stopped, or is not answered.
func (c *crew) asks(a Asker, m *member, to string, stop <-chan struct{}) {
	text := newText(c.cfg.Size)
	for n := int64(0); ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		began := time.Now().UnixNano()
		stamp(text, 0, n, began)
		if err := a.Ask(to, text); err != nil {
			c.refused(fmt.Sprintf("%s asked: %v", m.id, err))
			return
		}
		m.got.Add(1)
		c.timed(m, began)
	}
}
