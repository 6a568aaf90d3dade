package loadgen

import (
	"time"
)

// Result is what a run has measured. Times are in microseconds unless they say otherwise.
type Result struct {
	Verb      string           `json:"verb"`
	Run       string           `json:"run"` // begins the ids of its agents
	Senders   int              `json:"senders"`
	Receivers int              `json:"receivers"`
	Size      int              `json:"size"`
	Rate      float64          `json:"rate_offered"` // 0: as fast as it came through
	Seconds   float64          `json:"duration_s"`
	Sent      int64            `json:"sent"`     // messages
	Unsent    int64            `json:"unsent"`   // meant to be sent in the time, and not taken by the cluster
	Expected  int64            `json:"expected"` // arrivals of what was sent and not refused
	Received  int64            `json:"received"` // arrivals of it
	PerSecond float64          `json:"per_s"`    // arrivals a second while it was measured
	Latency   *Latency         `json:"latency_us"`
	Receipt   *Latency         `json:"receipt_us,omitempty"` // until the receipt
	Late      *Latency         `json:"late_us,omitempty"`    // senders, behind their own times: part of the latency
	Server    *Usage           `json:"server"`               // null: not measured
	Client    Usage            `json:"client"`
	Twice     int64            `json:"duplicated"` // or came too late
	Missed    int64            `json:"missed"`     // passed over by a later one
	Gaps      int64            `json:"gaps"`       // told by the cluster
	Refused   int64            `json:"refused"`
	Cut       int64            `json:"lost_connections"`
	Errors    map[string]int64 `json:"errors,omitempty"`
	First     string           `json:"first_error,omitempty"`
	Total     int64            `json:"-"` // arrivals of all that was sent and not refused, before and after what is measured too
	Lost      int64            `json:"-"` // of these, those that have not come
}

// Failed reports whether something that was sent has not arrived once and in order.
func (r Result) Failed() bool {
	return r.Received != r.Expected || r.Twice > 0 || r.Missed > 0 || r.Cut > 0
}

// Usage is what processes took.
type Usage struct {
	PerMessage float64 `json:"cpu_us_per_message"`
	CPU        float64 `json:"cpu_s"`               // of all processors together
	RSS        int64   `json:"rss_bytes,omitempty"` // at the end
	Heap       int64   `json:"heap_bytes,omitempty"`
	Edges      float64 `json:"-"` // of CPU for each message, that of servers that agents connect to
}

// usage returns what was used between two looks, for so many messages.
func usage(cpu time.Duration, messages int64) Usage {
	return Usage{PerMessage: per(cpu, messages), CPU: cpu.Seconds()}
}

// per returns the microseconds of CPU for each of so many.
func per(cpu time.Duration, n int64) float64 {
	return float64(cpu.Nanoseconds()) / 1e3 / float64(max(n, 1))
}

// spent returns what servers used between two looks; nil where they were not looked at.
func spent(before, after *Look, messages int64) *Usage {
	if before == nil || after == nil {
		return nil
	}
	u := usage(after.CPU-before.CPU, messages)
	u.RSS, u.Heap, u.Edges = after.RSS, after.Heap, per(after.Edges-before.Edges, messages)
	return &u
}

func (r *Run) result(d time.Duration, before, after *Look, self time.Duration) Result {
	end := r.meter.until.Load()
	out := Result{
		Verb: r.cfg.Kind, Run: r.name, Senders: r.cfg.Senders, Receivers: r.cfg.Receivers, Size: r.cfg.Size,
		Rate: r.cfg.Rate, Seconds: d.Seconds(),
	}
	for _, p := range r.pacers { // what was never sent is at least as late as this
		p.unsent(end, func(meant int64) {
			if r.meter.during(meant) {
				out.Unsent++
				r.meter.note(r.meter.shard(0), meant, end)
			}
		})
	}
	out.Sent, out.Expected = r.sent()
	c := r.meter.counts()
	out.Received, out.PerSecond = c.received, float64(c.arrived)/d.Seconds()
	out.Latency, out.Receipt, out.Late = r.meter.latency(), r.receipts.latency(), r.behind.latency()
	out.Client = usage(self, c.arrived)
	out.Server = spent(before, after, c.arrived)
	out.Lost = max(r.owed(), 0)
	out.Total = c.total + out.Lost
	r.notes.tell(&out)
	for _, l := range r.lines {
		out.Refused += l.refused.Load()
		out.Missed -= l.never.Load() // what comes next shows a hole where it was
	}
	out.Missed = max(out.Missed, 0) // the last ones show none
	return out
}

// Progress is how far a run is.
type Progress struct {
	Since    time.Duration // since the run began
	Sent     int64         // messages, the warm-up included
	Received int64         // arrivals, the warm-up included
	Latency  *Latency      // of what is measured; nil before
}

// Progress returns how far the run is.
func (r *Run) Progress() Progress {
	p := Progress{Since: time.Since(r.began), Received: r.meter.counts().total, Latency: r.meter.latency()}
	for _, l := range r.lines {
		p.Sent += l.sent.Load()
	}
	return p
}
