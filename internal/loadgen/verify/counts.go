package verify

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Counts are numbers of things sent. An event is sent once and delivered to each member.
type Counts struct {
	Sent       uint64  `json:"sent"`      // calls
	Stored     uint64  `json:"stored"`    // calls that said so
	Refused    uint64  `json:"refused"`   // calls that said that it is not stored
	Unknown    uint64  `json:"unknown"`   // calls whose outcome nobody knows; parts of streams that have no end
	Aborted    uint64  `json:"aborted"`   // streams that failed, and whose sender was told
	Delivered  uint64  `json:"delivered"` // to receivers
	Told       uint64  `json:"told"`      // not delivered, in a gap that was told
	Lost       int64   `json:"lost"`      // not delivered, in silence
	Duplicated int64   `json:"duplicated"`
	Reordered  int64   `json:"reordered"`
	P50        float64 `json:"p50_ms"` // from the call to the receiver
	P99        float64 `json:"p99_ms"`
}

// counter counts one kind.
type counter struct {
	sent, stored, refused, unknown atomic.Uint64
	delivered, told, aborted       atomic.Uint64
	lost, duplicated, reordered    atomic.Int64

	mu      sync.Mutex // guards latency
	latency *hdrhistogram.Histogram
}

// maxLatency is the longest latency that is told from longer ones.
const maxLatency = 10 * time.Minute

func newCounter() *counter {
	return &counter{latency: hdrhistogram.New(1, maxLatency.Microseconds(), 3)}
}

// late records how long a delivery took.
func (c *counter) late(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.latency.RecordValue(min(max(d, 0), maxLatency).Microseconds()) // in range by the line itself
}

// Counts returns what was counted of each kind, and of all together.
func (t *Tally) Counts() (kinds map[string]Counts, total Counts) {
	kinds, sum := map[string]Counts{}, newCounter()
	for k, c := range t.counts {
		kinds[string(k)] = c.counts()
		sum.add(c)
	}
	return kinds, sum.counts()
}

// add adds another counter's counts.
func (c *counter) add(o *counter) {
	c.sent.Add(o.sent.Load())
	c.stored.Add(o.stored.Load())
	c.refused.Add(o.refused.Load())
	c.unknown.Add(o.unknown.Load())
	c.aborted.Add(o.aborted.Load())
	c.delivered.Add(o.delivered.Load())
	c.told.Add(o.told.Load())
	c.lost.Add(o.lost.Load())
	c.duplicated.Add(o.duplicated.Load())
	c.reordered.Add(o.reordered.Load())
	o.mu.Lock()
	defer o.mu.Unlock()
	c.latency.Merge(o.latency)
}

func (c *counter) counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Counts{
		Sent: c.sent.Load(), Stored: c.stored.Load(), Refused: c.refused.Load(), Unknown: c.unknown.Load(),
		Aborted: c.aborted.Load(), Delivered: c.delivered.Load(), Told: c.told.Load(), Lost: c.lost.Load(),
		Duplicated: c.duplicated.Load(), Reordered: c.reordered.Load(),
		P50: milliseconds(c.latency.ValueAtQuantile(50)), P99: milliseconds(c.latency.ValueAtQuantile(99)),
	}
}

func milliseconds(us int64) float64 {
	return float64(time.Duration(us)*time.Microsecond) / float64(time.Millisecond)
}
