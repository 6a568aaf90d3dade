package loadgen

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/agora-relay/agora"
)

// maxLatency is the longest latency that is told from longer ones.
const maxLatency = 10 * time.Minute

// meter counts what arrives, and how late. Its methods may be called by many goroutines at a time.
type meter struct {
	from, until atomic.Int64 // what was meant to be sent in between is measured; Ticks
	shards      []shard      // readers share them, so that they don't wait for each other
}

type shard struct {
	received atomic.Int64 // of what is measured
	arrived  atomic.Int64 // while it was measured, whenever sent
	total    atomic.Int64 // since the beginning

	mu   sync.Mutex // guards late
	late *hdrhistogram.Histogram
	_    [64]byte // a line of the cache, so that neighbours don't slow each other
}

func newMeter() *meter {
	m := &meter{shards: make([]shard, 4*runtime.GOMAXPROCS(0))}
	for i := range m.shards {
		m.shards[i].late = newHistogram()
	}
	m.from.Store(math.MaxInt64)
	m.until.Store(math.MaxInt64)
	return m
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency.Microseconds(), 3) }

// during reports whether a moment is measured.
func (m *meter) during(at int64) bool { return at >= m.from.Load() && at < m.until.Load() }

// shard returns the shard of the k-th reader.
func (m *meter) shard(k int) *shard { return &m.shards[k%len(m.shards)] }

// record notes that what was meant for one moment has happened at another, and counts if it is measured.
func (m *meter) record(s *shard, meant, now int64, measured bool) {
	s.total.Add(1)
	if m.during(now) {
		s.arrived.Add(1)
	}
	if !measured {
		return
	}
	s.received.Add(1)
	m.note(s, meant, now)
}

// note enters a latency alone.
func (m *meter) note(s *shard, meant, now int64) {
	late := min(max(time.Duration(now-meant), 0), maxLatency)
	s.mu.Lock()
	_ = s.late.RecordValue(late.Microseconds()) // in range by the line above
	s.mu.Unlock()
}

// counts are what a meter has counted.
type counts struct{ received, arrived, total int64 }

func (m *meter) counts() (c counts) {
	for i := range m.shards {
		s := &m.shards[i]
		c.received += s.received.Load()
		c.arrived += s.arrived.Load()
		c.total += s.total.Load()
	}
	return c
}

// latency returns how late things were so far.
func (m *meter) latency() *Latency {
	sum := newHistogram()
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		sum.Merge(s.late)
		s.mu.Unlock()
	}
	return summary(sum)
}

// Latency is how late things were, in microseconds.
type Latency struct {
	P50  int64 `json:"p50"`
	P90  int64 `json:"p90"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p999"`
	Max  int64 `json:"max"`
}

// summary returns nil when there is nothing to sum up.
func summary(h *hdrhistogram.Histogram) *Latency {
	if h.TotalCount() == 0 {
		return nil
	}
	at := h.ValueAtQuantile
	return &Latency{at(50), at(90), at(99), at(99.9), h.Max()}
}

// now is the clock of everything here.
func now() int64 { return agora.Ticks() }
