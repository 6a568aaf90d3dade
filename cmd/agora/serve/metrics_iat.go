package serve

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/internal/latency"
)

// registerIAT registers what the IAT door counts.
func registerIAT(r *prometheus.Registry, s *iat.Stats) {
	gauge(r, "agora_iat_downlinks", "Open downlinks of IAT agents, by server-sent events or WebSocket.", loaded(&s.Downlinks))
	counter(r, "agora_iat_posts_total", "IAT envelopes that were POSTed.", loaded(&s.Posts))
	counter(r, "agora_iat_chunks_total", "Chunks that IAT agents sent.", loaded(&s.Chunks))
	histograms(r, "agora_iat_post_seconds", "Time from a POSTed IAT envelope to the end of its answer, by what it was: message, which is answered once it is stored, or request, which is answered by its addressee.",
		"kind", map[string]*latency.Histogram{"message": &s.Told, "request": &s.Asked})
	for code, n := range s.Errors {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agora_iat_errors_total", Help: "Errors sent to IAT agents, by error code.",
			ConstLabels: prometheus.Labels{"code": string(code)},
		}, loaded(n)))
	}
}

// registerTools registers which calls of tools were refused, whatever the protocol of the caller.
func registerTools(r *prometheus.Registry, s *tools.Stats) {
	refused := metricOf("agora_tools_refused_total", "Calls of tools that were refused at this edge, by why: tool (the agent has none of this name), arguments, task (no open task allows it), path (outside of a workspace), or time (checks of its principal have taken too much, those of registrations among them).", "why")
	r.MustRegister(collector{[]*prometheus.Desc{refused}, func(send func(prometheus.Metric, error)) {
		for why, n := range map[string]*atomic.Int64{"tool": &s.Unknown, "arguments": &s.Schema, "task": &s.Allowed, "path": &s.Path, "time": &s.Time} {
			send(prometheus.NewConstMetric(refused, prometheus.CounterValue, float64(n.Load()), why))
		}
	}})
}

// registerApprovals registers what agents ask approval for.
func registerApprovals(r *prometheus.Registry, a *approval.Approvals) {
	now := metricOf("agora_approvals", "Requests for approval that are kept, of all of the cluster, by state: pending, approved, denied, expired.", "state")
	r.MustRegister(collector{[]*prometheus.Desc{now}, func(send func(prometheus.Metric, error)) {
		c := a.Counts()
		for state, n := range map[approval.State]int64{
			approval.Pending: c.Pending, approval.Approved: c.Approved, approval.Denied: c.Denied, approval.Expired: c.Expired,
		} {
			send(prometheus.NewConstMetric(now, prometheus.GaugeValue, float64(n), string(state)))
		}
	}})
	decided := metricOf("agora_approvals_decided_total", "Requests for approval that were decided through this edge, by outcome.", "state")
	t := a.Totals()
	r.MustRegister(collector{[]*prometheus.Desc{decided}, func(send func(prometheus.Metric, error)) {
		for state, n := range map[approval.State]*atomic.Int64{approval.Approved: &t.Approved, approval.Denied: &t.Denied, approval.Expired: &t.Expired} {
			send(prometheus.NewConstMetric(decided, prometheus.CounterValue, float64(n.Load()), string(state)))
		}
	}})
	histograms(r, "agora_approval_seconds", "Time from a request for approval to its decision, of those decided through this edge.",
		"", map[string]*latency.Histogram{"": a.ToDecided()})
}
