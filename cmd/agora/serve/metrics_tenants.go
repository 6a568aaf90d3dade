package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
)

// registerConnLimiter registers whom the edge turned away before it knew what they want.
func registerConnLimiter(r *prometheus.Registry, s *admission.ConnLimiterStats) {
	turned := metricOf("agora_gate_refused_total", "WebSocket handshakes and HTTP requests refused by a limit: of handshakes a second, of one address, or of one principal.", "reason")
	r.MustRegister(collector{[]*prometheus.Desc{turned}, func(send func(prometheus.Metric, error)) {
		for reason, n := range map[string]int64{
			"handshakes": s.Handshakes.Load(), "address": s.PerIP.Load(), "principal": s.Principals.Load(),
		} {
			send(prometheus.NewConstMetric(turned, prometheus.CounterValue, float64(n), reason))
		}
	}})
}

// ratedLevels are the levels that have a rate.
var ratedLevels = []admission.Level{admission.OfAgent, admission.OfPrincipal, admission.OfTenant}

// registerTenants registers what each tenant does. Tenants are made by those who give out credentials, never by
// agents, and no more than a hundred of them have a label of their own.
func registerTenants(r *prometheus.Registry, n *edge.Node) {
	type series struct {
		desc *prometheus.Desc
		kind prometheus.ValueType
		read func(*admission.TenantStats) int64
	}
	all := []series{
		{metricOf("agora_tenant_sessions", "Agents with a session at this edge, by tenant.", "tenant"), prometheus.GaugeValue, func(s *admission.TenantStats) int64 { return s.Sessions.Load() }},
		{metricOf("agora_tenant_messages_total", "Messages and stream chunks accepted from agents, by tenant.", "tenant"), prometheus.CounterValue, func(s *admission.TenantStats) int64 { return s.Messages.Load() }},
		{metricOf("agora_tenant_bytes_total", "Bytes of payloads accepted from agents, by tenant.", "tenant"), prometheus.CounterValue, func(s *admission.TenantStats) int64 { return s.Bytes.Load() }},
		{metricOf("agora_tenant_limited_total", "Messages refused or delayed by the tenant's rate limits (limits.tenant), by tenant.", "tenant"), prometheus.CounterValue, func(s *admission.TenantStats) int64 { return s.Limited[admission.OfTenant].Load() }},
		{metricOf("agora_tenant_forbidden_total", "Requests refused by the policy or by the scope of a token, by tenant.", "tenant"), prometheus.CounterValue, func(s *admission.TenantStats) int64 { return s.Refused.Load() }},
	}
	limited := metricOf("agora_limited_total", "Messages refused or delayed by the rate of an agent, of a principal or of a tenant, by tenant and level.", "tenant", "level")
	descs := []*prometheus.Desc{limited}
	for _, s := range all {
		descs = append(descs, s.desc)
	}
	r.MustRegister(collector{descs, func(send func(prometheus.Metric, error)) {
		for tenant, stats := range n.Tenants() {
			for _, s := range all {
				send(prometheus.NewConstMetric(s.desc, s.kind, float64(s.read(stats)), tenant))
			}
			for _, level := range ratedLevels {
				n := float64(stats.Limited[level].Load())
				send(prometheus.NewConstMetric(limited, prometheus.CounterValue, n, tenant, level.String()))
			}
		}
	}})
}
