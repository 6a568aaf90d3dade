package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge/admission"
)

// counted are the resources that an edge itself counts. Their levels are labels, and no names of agents, principals or
// tenants.
var counted = []admission.Resource{
	admission.Calls, admission.CallsFor, admission.Streams, admission.Spaces, admission.Nodes, admission.Offers, admission.OfferBytes, admission.Subscriptions, admission.RequestBytes,
}

// registerUsage exports what the agents of an edge hold, and how often a level was refused more of it.
func registerUsage(r *prometheus.Registry, u *admission.Usage) {
	for _, of := range counted {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agora_held", Help: "What agents of this edge hold for a while, by resource (docs/security.md).",
			ConstLabels: prometheus.Labels{"resource": of.String()},
		}, func() float64 { return float64(u.All(of)) }))
		for level := range admission.Levels {
			r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "agora_held_refused_total", Help: "Requests refused because an agent, a principal, a tenant, or everybody, held as much of a resource as it may, by resource and level.",
				ConstLabels: prometheus.Labels{"resource": of.String(), "level": level.String()},
			}, func() float64 { return float64(u.Refused(of, level)) }))
		}
	}
}
