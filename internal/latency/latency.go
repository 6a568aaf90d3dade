// Package latency counts how long things took, in buckets, at the cost of two
// atomic additions: for metrics.
package latency

import (
	"sync/atomic"
	"time"
)

// Bounds are the upper bounds of the buckets; what took longer than the last is counted beyond them.
var Bounds = [...]time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	2 * time.Minute, 10 * time.Minute,
}

// Histogram counts durations. The zero value is ready; its methods may be called at the same
// time and never block or allocate. It has lines of the cache to itself.
type Histogram struct {
	_      [64]byte
	counts [len(Bounds) + 1]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
	_      [64]byte
}

// Observe counts a duration; one below zero, as two clocks may make of a short one, counts as zero.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	k := 0
	for k < len(Bounds) && d > Bounds[k] {
		k++
	}
	h.counts[k].Add(1)
	h.sum.Add(int64(d))
}

// Snapshot is what a Histogram has counted: Below[k] are those up to Bounds[k], Count is all of them.
type Snapshot struct {
	Count uint64
	Sum   time.Duration
	Below [len(Bounds)]uint64
}

// Read returns what was counted so far. What is observed meanwhile may be in it or not.
func (h *Histogram) Read() (s Snapshot) {
	s.Sum = time.Duration(h.sum.Load())
	for k := range h.counts {
		s.Count += h.counts[k].Load()
		if k < len(s.Below) {
			s.Below[k] = s.Count
		}
	}
	return s
}
