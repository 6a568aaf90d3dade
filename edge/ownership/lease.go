package ownership

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/latency"
	"github.com/agora-relay/agora/presence"
)

// beatsPerLease is how many renewals go into a lease. An edge that leaves out two, and under whose name
// nobody answers, is known to be gone: so its agents are back long before its lease is over.
const beatsPerLease = 15

// longestBeat is the longest time between two renewals, however long the lease: what an edge stores a minute after its
// last one is taken for a dead edge's, and nobody reads it.
const longestBeat = 10 * time.Second

// Lease is what an edge holds its sessions by: while it is renewed in time, nobody takes them over unasked.
type Lease struct {
	cfg    *Config
	rival  absence                 // of another life of this edge that has the lease; the renewals' own
	last   atomic.Pointer[renewal] // that succeeded
	lapsed atomic.Bool             // it was found gone: not all that stands under it has been looked after since
	took   latency.Histogram
	failed atomic.Int64
}

// interval is the time between two renewals.
func (l *Lease) interval() time.Duration { return min(l.cfg.Lease/beatsPerLease, longestBeat) }

// Valid returns when the lease was last renewed, and whether it still holds.
// The monotonic clock decides: an edge that was frozen knows at once that it
// may have been given up, and neither publishes nor delivers before it knows better.
func (l *Lease) Valid() (time.Time, bool) {
	r := l.last.Load()
	if r == nil {
		return time.Time{}, false
	}
	return r.at, !guard.Leases || time.Since(r.sent) < l.cfg.Lease
}

// renewal is one that succeeded.
type renewal struct {
	sent time.Time // when it was sent, by the monotonic clock
	at   time.Time // the same by the log's clock
}

// errRival says that another edge that lives has the same id. It goes away for nothing that this one could do.
type errRival struct{ id string }

func (e *errRival) Error() string {
	return fmt.Sprintf("another edge runs under the id %q: give each edge an id of its own, or none (--id)", e.id)
}

// acquire writes the lease. Where another life of the edge has it, that is left alone until it is known to be gone;
// while it answers, the error is an errRival.
func (l *Lease) acquire(ctx context.Context) (held bool, err error) {
	if _, valid := l.Valid(); valid { // a renewal that is late on its way must not write the lease of an edge that was taken for gone
		if held, err = l.cfg.Presence.Leases.Extend(ctx, l.cfg.Holder); held {
			l.rival = absence{}
			return true, nil
		}
	}
	if err == nil {
		held, err = l.cfg.Presence.Leases.Renew(ctx, l.cfg.Holder, "")
	}
	taken, ok := errors.AsType[*presence.TakenError](err)
	if !ok {
		l.rival = absence{}
		return held, err
	}
	askErr := l.cfg.Peers.Ping(ctx, taken.By)
	if askErr == nil {
		return false, &errRival{l.cfg.Holder.Edge}
	}
	nobody := l.rival.record(askErr)
	age, alive, ageErr := l.cfg.Presence.Leases.Age(ctx, taken.By)
	if ageErr != nil || alive && !(nobody && age >= 2*l.interval()) {
		return false, err
	}
	return l.cfg.Presence.Leases.Renew(ctx, l.cfg.Holder, taken.By.Incarnation)
}

// renewed notes a renewal.
func (l *Lease) renewed(r renewal) {
	l.last.Store(&r)
	l.took.Observe(time.Since(r.sent))
}

// Left returns how long the lease still holds; below zero where it does not, and 0 before the first renewal.
func (l *Lease) Left() time.Duration {
	r := l.last.Load()
	if r == nil {
		return 0
	}
	return l.cfg.Lease - time.Since(r.sent)
}

// Renewals returns how long the renewals took that succeeded: some round trips to presence.
func (l *Lease) Renewals() *latency.Histogram { return &l.took }

// Failed returns how many renewals have failed.
func (l *Lease) Failed() int64 { return l.failed.Load() }
