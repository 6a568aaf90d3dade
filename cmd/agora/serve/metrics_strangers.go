package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge/admission"
)

// registerStrangers registers what is kept of requests and connections that have shown no credentials.
func registerStrangers(r *prometheus.Registry, e *edgeServer) {
	strangers := e.node.Shedder().Strangers()
	s := strangers.Stats()
	gauge(r, "agora_strangers", "Requests without credentials that are read, or answered where none are needed, at whatever port.", loaded(&s.Places))
	gauge(r, "agora_strangers_bytes", "Bytes kept of requests without credentials, and of connections over which nobody was admitted; a sixteenth of limits.queued at most, besides that.", func() float64 { return float64(strangers.Held()) })
	counter(r, "agora_strangers_evicted_total", "Requests and connections without credentials that were ended because others needed their place or bytes.", loaded(&s.Evicted))
	counter(r, "agora_strangers_late_total", "Requests without credentials that were ended because they did not come in time.", loaded(&s.Late))
	pending := metricOf("agora_pending_connections", "Connections over which nobody was admitted yet, or that have nothing under way, by port.", "port")
	evicted := metricOf("agora_pending_evicted_total", "Such connections that were closed because others needed their place or bytes, by port.", "port")
	r.MustRegister(collector{[]*prometheus.Desc{pending, evicted}, func(send func(prometheus.Metric, error)) {
		for port, p := range e.ports.pending() {
			send(prometheus.NewConstMetric(pending, prometheus.GaugeValue, float64(p.Pending()), port))
			send(prometheus.NewConstMetric(evicted, prometheus.CounterValue, float64(p.Evicted()), port))
		}
	}})
}

// pending returns the connections that were not admitted, by the names of ports.
func (p *ports) pending() map[string]*admission.PendingConns {
	all := map[string]*admission.PendingConns{"public": p.public.listener, "admin": p.admin.listener}
	if p.grpc != nil {
		all["grpc"] = p.grpc.PendingConns
	}
	return all
}
