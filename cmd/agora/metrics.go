package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/latency"
)

// newRegistry returns an edge's metrics, read from the counters of its parts
// when somebody asks.
func newRegistry(e *edgeServer) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerNode(r, e)
	registerCrowd(r, e.node.Crowd())
	registerDoor(r, e.door.Stats())
	registerGate(r, e.node.Gate().Stats())
	registerTenants(r, e.node)
	registerLog(r, e.broker)
	registerHealth(r, e)
	registerLegs(r, e)
	return r
}

func registerNode(r *prometheus.Registry, e *edgeServer) {
	n := e.node
	gauge(r, "agora_ready", "Whether the edge can serve agents.", func() float64 {
		return truth(e.ready() == nil)
	})
	gauge(r, "agora_draining", "Whether the edge hands its agents over to others.", func() float64 { return truth(n.Stats().Draining) })
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agora_build_info", Help: "Always 1; the label says which version runs.",
		ConstLabels: prometheus.Labels{"version": version()},
	})
	info.Set(1)
	r.MustRegister(info)
	gauge(r, "agora_sessions", "Sessions held.", func() float64 { return float64(n.Stats().Sessions) })
	counter(r, "agora_sessions_started_total", "Sessions that began at this edge, or went on at it.", func() float64 { return float64(n.Stats().Started) })
	ended := metricOf("agora_sessions_ended_total", "Sessions that left this edge, by the reason.", "reason")
	r.MustRegister(collector{[]*prometheus.Desc{ended}, func(send func(prometheus.Metric, error)) {
		for reason, count := range n.Stats().Ended {
			send(prometheus.NewConstMetric(ended, prometheus.CounterValue, float64(count), reason))
		}
	}})
	counter(r, "agora_messages_stored_total", "Messages and parts of streams stored.", func() float64 { return float64(n.Stats().Sent) })
}

// registerLegs registers how long messages take on the parts of their way.
func registerLegs(r *prometheus.Registry, e *edgeServer) {
	histograms(r, "agora_latency_seconds", "How long messages take: in from a frame read to the log's hands (every 16th frame), "+
		"stored from there to the log's acknowledgement (per record), delivered from stored to written to a socket (per write, of agents that were there).",
		"leg", map[string]*latency.Histogram{
			"in": &e.door.Stats().ToLog, "stored": e.broker.ToStored(), "delivered": e.node.ToWritten(),
		})
}

func registerCrowd(r *prometheus.Registry, c *edge.Crowd) {
	connections, queued := c.Limits()
	gauge(r, "agora_limit_connections", "Connections that the edge takes.", func() float64 { return float64(connections) })
	gauge(r, "agora_limit_queued_bytes", "Bytes that the edge holds before it sheds.", func() float64 { return float64(queued) })
	gauge(r, "agora_queued_bytes", "Bytes held for all connections together.", func() float64 { return float64(c.Held()) })
	gauge(r, "agora_queue_share", "How much of its usual bound a queue may hold, from 0 to 1.", func() float64 {
		return float64(c.Share()) / edge.Whole
	})
	s := c.Stats()
	counter(r, "agora_shed_connections_total", "Connections not let in: too many, too much held, or draining.", loaded(&s.Connections))
	counter(r, "agora_shed_messages_total", "One-shots and events refused because the edge held too much.", loaded(&s.Messages))
	counter(r, "agora_shed_slowed_total", "Parts of streams made to wait because the edge held too much.", loaded(&s.Slowed))
	counter(r, "agora_shed_closed_total", "Connections closed because the edge held far too much.", loaded(&s.Closed))
}

func registerDoor(r *prometheus.Registry, s *ws.Stats) {
	gauge(r, "agora_ws_connections", "Open WebSocket connections.", loaded(&s.Connections))
	counter(r, "agora_ws_accepted_total", "Connections upgraded.", loaded(&s.Accepted))
	counter(r, "agora_ws_refused_total", "Connections refused before the upgrade.", loaded(&s.Refused))
	counter(r, "agora_ws_frames_in_total", "Frames read.", loaded(&s.FramesIn))
	counter(r, "agora_ws_bytes_in_total", "Bytes of frames read.", loaded(&s.BytesIn))
	counter(r, "agora_ws_frames_out_total", "Frames written.", loaded(&s.FramesOut))
	counter(r, "agora_ws_bytes_out_total", "Bytes written.", loaded(&s.BytesOut))
	counter(r, "agora_ws_writes_total", "System calls that wrote.", loaded(&s.Writes))
	counter(r, "agora_ws_stalled_total", "Connections closed because they took nothing.", loaded(&s.Stalled))
	counter(r, "agora_ws_silent_total", "Connections without an agent closed because nothing came of them.", loaded(&s.Silent))
	for code, n := range s.Errors {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agora_ws_errors_total", Help: "Error frames by code.",
			ConstLabels: prometheus.Labels{"code": string(code)},
		}, loaded(n)))
	}
}

func registerLog(r *prometheus.Registry, b *broker.Broker) {
	for _, c := range []struct {
		name, help string
		read       func(broker.Stats) uint64
	}{
		{"records", "Records stored.", func(s broker.Stats) uint64 { return s.Records }},
		{"parts", "Parts stored in records.", func(s broker.Stats) uint64 { return s.Parts }},
		{"duplicates", "Parts that were stored before.", func(s broker.Stats) uint64 { return s.Duplicates }},
		{"retries", "Publishes sent again.", func(s broker.Stats) uint64 { return s.Retries }},
		{"refusals", "Parts refused.", func(s broker.Stats) uint64 { return s.Refusals }},
		{"fences", "Lanes that looked into the log.", func(s broker.Stats) uint64 { return s.Fences }},
		{"deposed", "Lanes lost to a younger holder.", func(s broker.Stats) uint64 { return s.Deposed }},
		{"delivered", "Messages handed to sessions.", func(s broker.Stats) uint64 { return s.Delivered }},
		{"refills", "Reads of the log for an inbox.", func(s broker.Stats) uint64 { return s.Refills }},
		{"gaps", "Gaps told.", func(s broker.Stats) uint64 { return s.Gaps }},
		{"dropped", "Live records left to be read from the log.", func(s broker.Stats) uint64 { return s.Dropped }},
		{"repaired", "Inboxes that an audit found behind.", func(s broker.Stats) uint64 { return s.Repaired }},
		{"void", "Records skipped as stored too late.", func(s broker.Stats) uint64 { return s.Void }},
	} {
		counter(r, "agora_log_"+c.name+"_total", c.help, func() float64 { return float64(c.read(b.Stats())) })
	}
	gauge(r, "agora_log_lanes", "Open lanes.", func() float64 { return float64(b.Stats().Lanes) })
	gauge(r, "agora_clock_skew_seconds", "How far the machine's clock is ahead of the log's time.", func() float64 { return b.Stats().Skew.Seconds() })
	gauge(r, "agora_log_inboxes", "Open inboxes.", func() float64 { return float64(b.Stats().Inboxes) })
}

func loaded(n interface{ Load() int64 }) func() float64 {
	return func() float64 { return float64(n.Load()) }
}

func gauge(r *prometheus.Registry, name, help string, read func() float64) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

func counter(r *prometheus.Registry, name, help string, read func() float64) {
	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}
