package serve

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/internal/latency"
)

// registerP2P registers what the libp2p door counts.
func registerP2P(r *prometheus.Registry, s *p2p.Stats) {
	gauge(r, "agora_p2p_connections", "Connections of libp2p at this edge, those with other edges included.", loaded(&s.Connections))
	gauge(r, "agora_p2p_strangers", "Those of them whose peers are bound to no agent, and no edges; without authentication, those over which nothing was asked yet.", loaded(&s.Strangers))
	counter(r, "agora_p2p_refused_total", "Connections of libp2p that this edge has closed when their peer had proven who it is, because of a limit by address or for want of a place.", loaded(&s.Refused))
	gauge(r, "agora_p2p_held_bytes", "Bytes that peers have sent and this edge keeps: what it has not read yet of their streams, and requests that are not over.", loaded(&s.Held))
	gauge(r, "agora_p2p_reservations", "Peers that have reserved a place at the relay of this edge.", loaded(&s.Reservations))
	circuits := metricOf("agora_p2p_circuits", "Circuits through this edge that are open, by where they lead: here, to a peer that has reserved a place here, also from other edges; across, to one that has at another edge; agent, to an agent of another dialect.", "where")
	r.MustRegister(collector{[]*prometheus.Desc{circuits}, func(send func(prometheus.Metric, error)) {
		for where, n := range map[string]int64{"here": s.Here.Load(), "across": s.Across.Load(), "agent": s.Derived.Load()} {
			send(prometheus.NewConstMetric(circuits, prometheus.GaugeValue, float64(n), where))
		}
	}})
	counter(r, "agora_p2p_relayed_bytes_total", "Bytes of circuits to peers that this edge has passed on, in both directions.", loaded(&s.Relayed))
	hops := metricOf("agora_p2p_hop_total", "Reservations and circuits that this edge was asked for, by the status of Circuit Relay v2 that it answered.", "status")
	r.MustRegister(collector{[]*prometheus.Desc{hops}, func(send func(prometheus.Metric, error)) {
		s.Hops(func(status string, n int64) {
			send(prometheus.NewConstMetric(hops, prometheus.CounterValue, float64(n), status))
		})
	}})
	handoffs := metricOf("agora_p2p_handoffs_total", "Handoffs that this edge was asked for by libp2p, by code: 200, or that of the failure.", "code")
	r.MustRegister(collector{[]*prometheus.Desc{handoffs}, func(send func(prometheus.Metric, error)) {
		s.HandedOff(func(code int, n int64) {
			send(prometheus.NewConstMetric(handoffs, prometheus.CounterValue, float64(n), strconv.Itoa(code)))
		})
	}})
	histograms(r, "agora_p2p_handoff_seconds", "Duration of those handoffs, from their beginning to the end of the answer.", "", map[string]*latency.Histogram{"": &s.Handoffs})
}
