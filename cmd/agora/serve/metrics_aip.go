package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/latency"
)

// registerAIP registers what the AIP door counts.
func registerAIP(r *prometheus.Registry, s *aip.Stats) {
	gauge(r, "agora_aip_nodes", "AIP agents and toolboxes that are registered at this edge, which keeps a connection to each.", loaded(&s.Nodes))
	gauge(r, "agora_aip_calls", "AIP sessions and tool calls through this edge that are open.", loaded(&s.Calls))
	ended := metricOf("agora_aip_calls_total", "AIP calls through this edge that ended, by kind (session, of agents; tool, a tool call) and gRPC status code.", "kind", "code")
	kinds := map[string]*aip.Counted{"session": &s.Sessions, "tool": &s.Tools}
	r.MustRegister(collector{[]*prometheus.Desc{ended}, func(send func(prometheus.Metric, error)) {
		for kind, c := range kinds {
			for code, n := range c.Codes() {
				send(prometheus.NewConstMetric(ended, prometheus.CounterValue, float64(n), kind, code))
			}
		}
	}})
	took := map[string]*latency.Histogram{}
	for kind, c := range kinds {
		took[kind] = &c.Took
	}
	histograms(r, "agora_aip_call_seconds", "Duration of AIP calls through this edge, from their first message to their status, by kind: session, of agents, as long as both talk; tool, a tool call.", "kind", took)
	bytes := metricOf("agora_aip_bytes_total", "Bytes of messages of AIP calls that this edge received from callers and nodes (in), and sent to them (out).", "direction")
	r.MustRegister(collector{[]*prometheus.Desc{bytes}, func(send func(prometheus.Metric, error)) {
		send(prometheus.NewConstMetric(bytes, prometheus.CounterValue, float64(s.In.Load()), "in"))
		send(prometheus.NewConstMetric(bytes, prometheus.CounterValue, float64(s.Out.Load()), "out"))
	}})
	counter(r, "agora_aip_redials_total", "Connections to AIP nodes that this edge made anew: the connection before was lost, or the edge that had it died or drained.", loaded(&s.Redials))
}

// registerLinks registers the links to other gateways.
func registerLinks(r *prometheus.Registry, d *aip.Door) {
	links := metricOf("agora_links", "Links to AIP gateways of others that this edge holds, by state: up, polling (up, and asked every 10 s, as the gateway takes no subscriptions), connecting, down. Each link is held by one edge.", "state")
	r.MustRegister(collector{[]*prometheus.Desc{links}, func(send func(prometheus.Metric, error)) {
		now := d.LinkStates()
		for _, state := range []string{aip.LinkUp, aip.LinkPolling, aip.LinkConnecting, aip.LinkDown} {
			send(prometheus.NewConstMetric(links, prometheus.GaugeValue, float64(now[state]), state))
		}
	}})
}
