package p2p

import (
	"context"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

// Drain takes no reservations and makes no circuits any more, and closes the connections of peers that other edges are
// not, in groups over the time that ctx has. It returns when none is left, or ctx is over. Anyone who asks for edges to
// connect to is not named this one any more. Circuits that are under way go on until their peer's turn comes.
func (d *Door) Drain(ctx context.Context) {
	d.drains.Store(true)
	if err := d.relays.put(ctx); err != nil { // which is told again while the door is open
		d.cfg.Log.Debug("other edges were not told where this one is reached", "err", err)
	}
	until, bounded := ctx.Deadline()
	if !bounded {
		until = time.Now().Add(drainTime)
	}
	for k := drainGroups; k > 0; k-- {
		left := d.strangers()
		for _, c := range left[:(len(left)+k-1)/k] {
			_ = c.Close() // it is gone, else
		}
		if len(left) == 0 || !pause.For(ctx, time.Until(until)/time.Duration(k+1)) {
			return
		}
	}
}

const (
	drainGroups = 16
	drainTime   = 10 * time.Second
)
