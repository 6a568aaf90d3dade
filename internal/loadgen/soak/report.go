package soak

import (
	"time"

	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// Report is how far a run is, or what it came to.
type Report struct {
	Run        string                   `json:"run"` // begins the ids of its agents
	Seconds    float64                  `json:"seconds"`
	Kinds      map[string]verify.Counts `json:"kinds"` // message, stream, chunk, request, reply, event
	Total      verify.Counts            `json:"total"`
	Cuts       uint64                   `json:"cuts"`       // connections that the run has cut
	Reconnects uint64                   `json:"reconnects"` // connections made beyond the first of each agent
	Away       float64                  `json:"away_s"`     // longest time that an agent was without a connection
	Gaps       uint64                   `json:"gaps"`       // told by the cluster
	Errors     map[string]uint64        `json:"errors"`     // of calls, by code
	Violations uint64                   `json:"violations"`
	Listed     []verify.Violation       `json:"listed"` // the first hundred
}

// Failed reports whether a promise was broken.
func (r Report) Failed() bool { return r.Violations > 0 }

// Progress returns how far the run is.
func (r *Run) Progress() Report {
	out := Report{
		Run: r.name, Seconds: r.tally.Elapsed().Seconds(), Cuts: r.net.Cuts(), Gaps: r.gaps.Load(), Errors: r.tally.told(),
		Away: r.away.most(time.Now()).Seconds(), Reconnects: uint64(max(0, int(r.net.Opened())-len(r.senders)-len(r.receivers))),
	}
	out.Kinds, out.Total = r.tally.Counts()
	out.Violations, out.Listed = r.tally.Violations()
	return out
}
