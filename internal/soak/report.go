package soak

import (
	"maps"
	"slices"
	"time"
)

// Report is how far a run is, or what it came to.
type Report struct {
	Run        string            `json:"run"` // begins the ids of its agents
	Seconds    float64           `json:"seconds"`
	Kinds      map[string]Counts `json:"kinds"` // message, stream, chunk, request, reply, event
	Total      Counts            `json:"total"`
	Cuts       uint64            `json:"cuts"`       // connections that the run has cut
	Reconnects uint64            `json:"reconnects"` // connections made beyond the first of each agent
	Gaps       uint64            `json:"gaps"`       // told by the cluster
	Errors     map[string]uint64 `json:"errors"`     // of calls, by code
	Violations uint64            `json:"violations"`
	Listed     []Violation       `json:"listed"` // the first hundred
}

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

// Failed tells whether a promise was broken.
func (r Report) Failed() bool { return r.Violations > 0 }

// Progress returns how far the run is.
func (r *Run) Progress() Report {
	t := r.tally
	out := Report{
		Run: r.name, Seconds: t.clock().Seconds(), Kinds: map[string]Counts{},
		Cuts: r.net.Cuts(), Gaps: t.gaps.Load(),
	}
	out.Reconnects = uint64(max(0, int(r.net.Opened())-len(r.senders)-len(r.receivers)))
	sum := newCounter()
	for k := range kinds {
		out.Kinds[k.String()] = t.counts[k].counts()
		sum.add(t.counts[k])
	}
	out.Total = sum.counts()
	t.mu.Lock()
	defer t.mu.Unlock()
	out.Violations, out.Listed, out.Errors = t.total, slices.Clone(t.listed), maps.Clone(t.errors)
	return out
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
	c.late.Merge(o.late)
}

func (c *counter) counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Counts{
		Sent: c.sent.Load(), Stored: c.stored.Load(), Refused: c.refused.Load(), Unknown: c.unknown.Load(),
		Aborted: c.aborted.Load(), Delivered: c.delivered.Load(), Told: c.told.Load(), Lost: c.lost.Load(),
		Duplicated: c.duplicated.Load(), Reordered: c.reordered.Load(),
		P50: milliseconds(c.late.ValueAtQuantile(50)), P99: milliseconds(c.late.ValueAtQuantile(99)),
	}
}

func milliseconds(us int64) float64 {
	return float64(time.Duration(us)*time.Microsecond) / float64(time.Millisecond)
}
