package loadgen

import (
	"context"
	"fmt"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

// prime greets on every line until all that it reaches have heard of it, as long as it may: the first message of a line
// costs a cluster much more than those that follow, and a thousand at once would fill the time that is measured. It
// greets again where nothing opens for a while, as a subscription may have been on its way; less and less often, so
// that a slow system does not drown in it.
func (r *Run) prime(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, r.cfg.Settle)
	defer cancel()
	var want int64
	for _, l := range r.lines {
		want += l.copies
	}
	last, since, gap := int64(-1), now(), time.Second/4
	for within.Err() == nil {
		n := r.heard()
		if n == want {
			return
		}
		if last < 0 || n == last && now()-since > int64(gap) {
			r.greet()
			since, gap = now(), 2*gap
		} else if n != last {
			since = now()
		}
		last = n
		pause.For(within, time.Millisecond)
	}
	if ctx.Err() == nil {
		r.notes.failed("unheard", fmt.Sprintf("only %d of %d first messages came within %v", r.heard(), want, r.cfg.Settle))
	}
}

// greet greets on the lines that have not reached all.
func (r *Run) greet() {
	for _, l := range r.lines {
		if l.heard.Load() < l.copies {
			l.greet()
		}
	}
}

// heard returns how many agents have heard of lines, of all lines together.
func (r *Run) heard() (n int64) {
	for _, l := range r.lines {
		n += l.heard.Load()
	}
	return n
}

// fill waits until as much has arrived as all windows together let out at once at the start, which is no load that
// lasts.
func (r *Run) fill(ctx context.Context) {
	if r.cfg.Rate > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Settle)
	defer cancel()
	var want int64
	for _, l := range r.lines {
		want += int64(r.cfg.Window) * l.copies
	}
	for ctx.Err() == nil && r.meter.counts().total < want {
		pause.For(ctx, 5*time.Millisecond)
	}
}
