package verify

import (
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

// maxLatency is the longest latency that is told from longer ones.
const maxLatency = 10 * time.Minute

// counter counts one kind. The tally's lock guards it.
type counter struct {
	Counts
	latency *hdrhistogram.Histogram
}

func newCounter() *counter {
	return &counter{latency: hdrhistogram.New(1, maxLatency.Microseconds(), 3)}
}

// late records how long a delivery took.
func (c *counter) late(d time.Duration) {
	_ = c.latency.RecordValue(min(max(d, 0), maxLatency).Microseconds()) // in range by the line itself
}

// Counts returns what was counted of each kind, and of all together.
func (t *Tally) Counts() (kinds map[string]Counts, total Counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kinds, sum := map[string]Counts{}, newCounter()
	for k, c := range t.counts {
		kinds[string(k)] = c.summary()
		sum.add(c)
	}
	return kinds, sum.summary()
}

// add adds another counter's counts.
func (c *counter) add(o *counter) {
	c.Sent += o.Sent
	c.Stored += o.Stored
	c.Refused += o.Refused
	c.Unknown += o.Unknown
	c.Aborted += o.Aborted
	c.Delivered += o.Delivered
	c.Told += o.Told
	c.Lost += o.Lost
	c.Duplicated += o.Duplicated
	c.Reordered += o.Reordered
	c.latency.Merge(o.latency)
}

// summary returns the counts, with the quantiles.
func (c *counter) summary() Counts {
	all := c.Counts
	all.P50, all.P99 = float64(c.latency.ValueAtQuantile(50))/1000, float64(c.latency.ValueAtQuantile(99))/1000
	return all
}
