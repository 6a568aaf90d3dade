package edge

import (
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

// bucket holds tokens that come at a rate and are taken by messages. It is one
// number, the moment from which on it is full: so the many that share one take no
// lock, and a rate may change at any time. The zero value is full.
type bucket struct{ full atomic.Int64 } // in ticks; 0 for full

// pace is how fast a bucket fills and how much it holds.
type pace struct{ rate, burst float64 }

// paced returns the pace of a rate with some seconds' worth of burst, which is at least least. No rate is no limit.
func paced(rate, seconds, least float64) pace { return pace{rate, max(least, rate*seconds)} }

// take takes n tokens, or as many as the bucket holds at most. It returns 0, or
// after how long they are there: then they are taken only where the caller waits for them.
func (b *bucket) take(p pace, n float64, waits bool) time.Duration {
	if p.rate <= 0 {
		return 0
	}
	cost := int64(min(n, p.burst) / p.rate * float64(time.Second))
	room := int64(p.burst / p.rate * float64(time.Second))
	for {
		now, full := agora.Ticks(), b.full.Load()
		next := full + cost
		if full == 0 || full < now {
			next = now + cost
		}
		after := time.Duration(max(0, next-now-room))
		if after > 0 && !waits || b.full.CompareAndSwap(full, next) {
			return after
		}
	}
}

// give puts tokens back that were taken in vain.
func (b *bucket) give(p pace, n float64) {
	if p.rate > 0 && b.full.Load() != 0 {
		b.full.Add(-int64(min(n, p.burst) / p.rate * float64(time.Second)))
	}
}

// fill makes the bucket full: what was taken at another rate says nothing at this one.
func (b *bucket) fill() { b.full.Store(0) }
