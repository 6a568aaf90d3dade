package serve

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/cmd/agora/version"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/latency"
)

// newRegistry returns an edge's metrics, read from the counters of its parts
// when somebody asks.
func newRegistry(e *edgeServer) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerNode(r, e)
	registerCalls(r, e.node.Calls())
	registerShedder(r, e.node.Shedder())
	registerStrangers(r, e)
	for _, d := range e.doors.all {
		d.metrics(r)
	}
	registerTools(r, e.tools.Stats())
	if e.approvals != nil {
		registerApprovals(r, e.approvals)
	}
	registerPort(r, e.ports.public)
	registerConnLimiter(r, e.node.ConnLimiter().Stats())
	registerTenants(r, e.node)
	registerUsage(r, e.node.Usage())
	registerLog(r, e.backends.broker)
	registerHealth(r, e)
	registerLegs(r, e)
	return r
}

func registerNode(r *prometheus.Registry, e *edgeServer) {
	n := e.node
	gauge(r, "agora_ready", "1 while the edge can serve agents, as /readyz says, else 0.", func() float64 {
		return truth(e.ready() == nil)
	})
	gauge(r, "agora_draining", "1 from the moment that the edge is asked to end, while it hands its agents over to other edges; else 0.", func() float64 {
		return truth(e.leaving.Load() || n.Stats().Draining)
	})
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agora_build_info", Help: "Always 1; the label is the version of the program.",
		ConstLabels: prometheus.Labels{"version": version.String()},
	})
	info.Set(1)
	r.MustRegister(info)
	gauge(r, "agora_sessions", "Agents with a session at this edge.", func() float64 { return float64(n.Stats().Sessions) })
	counter(r, "agora_sessions_started_total", "Sessions begun or resumed at this edge.", func() float64 { return float64(n.Stats().Started) })
	ended := metricOf("agora_sessions_ended_total", "Sessions that ended at this edge, or moved to another, by reason.", "reason")
	r.MustRegister(collector{[]*prometheus.Desc{ended}, func(send func(prometheus.Metric, error)) {
		for reason, count := range n.Stats().Ended {
			send(prometheus.NewConstMetric(ended, prometheus.CounterValue, float64(count), reason))
		}
	}})
	counter(r, "agora_rebalanced_total", "Agents that were handed over to other edges because this one had more of them than the mean: see rebalance.percent.", loaded(&n.Balancer().Stats().Moved))
	gauge(r, "agora_directory_tenants", "Tenants whose directory this edge keeps, as somebody has asked here of late.", func() float64 { return float64(n.Directory().Tenants) })
	gauge(r, "agora_directory_agents", "Agents in those directories.", func() float64 { return float64(n.Directory().Agents) })
	gauge(r, "agora_directory_bytes", "Bytes that those directories take, counted with limits.queued.", func() float64 { return float64(n.Directory().Bytes) })
	counter(r, "agora_messages_stored_total", "Messages and stream chunks of this edge's agents stored in JetStream.", func() float64 { return float64(n.Stats().Sent) })
}

func registerCalls(r *prometheus.Registry, s *call.Stats) {
	gauge(r, "agora_calls", "Calls made at this edge that are open.", loaded(&s.Open))
	counter(r, "agora_calls_made_total", "Calls made at this edge, those made again under their name included.", loaded(&s.Made))
	ended := metricOf("agora_calls_ended_total", "Calls made at this edge that ended: answered, given_up by their callers, or failed with an abort or a timeout.", "outcome")
	r.MustRegister(collector{[]*prometheus.Desc{ended}, func(send func(prometheus.Metric, error)) {
		for outcome, n := range map[string]*atomic.Int64{"answered": &s.Answered, "given_up": &s.GivenUp, "failed": &s.Failed} {
			send(prometheus.NewConstMetric(ended, prometheus.CounterValue, float64(n.Load()), outcome))
		}
	}})
	counter(r, "agora_calls_refused_total", "Calls refused because too many were open (limits.calls, limits.edge.calls).", loaded(&s.Refused))
	counter(r, "agora_calls_lost_total", "Calls of callers at edges that have died, which this edge has ended.", loaded(&s.Lost))
}

// registerLegs registers how long messages take on the parts of their way.
func registerLegs(r *prometheus.Registry, e *edgeServer) {
	histograms(r, "agora_latency_seconds", "Time that messages take, by leg: in, from a frame read to its publish to JetStream (every 16th frame); "+
		"stored, from there to JetStream's acknowledgement (every batch); delivered, from there to the receiver's socket (every write, to receivers that were connected).",
		"leg", map[string]*latency.Histogram{
			"in": &e.doors.ws.Stats().ToLog, "stored": e.backends.broker.ToStored(), "delivered": e.node.ToWritten(),
		})
}

func registerShedder(r *prometheus.Registry, shedder *admission.Shedder) {
	connections, queued := shedder.Limits()
	gauge(r, "agora_limit_connections", "Limit of open connections (limits.connections).", func() float64 { return float64(connections) })
	gauge(r, "agora_limit_queued_bytes", "Limit of bytes buffered for all connections together, from which on load is shed (limits.queued).", func() float64 { return float64(queued) })
	gauge(r, "agora_queued_bytes", "Bytes buffered for all connections together, those of strangers included.", func() float64 {
		return float64(shedder.Held() + shedder.Strangers().Held())
	})
	gauge(r, "agora_queue_share", "Share of its usual size that the queue of one connection may have: 1, and less while much is buffered.", func() float64 {
		return float64(shedder.Share()) / admission.FullShare
	})
	s := shedder.Stats()
	counter(r, "agora_shed_connections_total", "Connections refused by load shedding: too many of them, too much buffered, or the edge drains.", loaded(&s.Connections))
	counter(r, "agora_shed_messages_total", "Messages and events refused by load shedding, because too much was buffered.", loaded(&s.Messages))
	counter(r, "agora_shed_slowed_total", "Stream chunks delayed by load shedding, because too much was buffered.", loaded(&s.Slowed))
	counter(r, "agora_shed_closed_total", "Connections closed by load shedding, because far too much was buffered.", loaded(&s.Closed))
}

func registerDoor(r *prometheus.Registry, s *ws.Stats) {
	gauge(r, "agora_ws_connections", "Open WebSocket connections.", loaded(&s.Connections))
	counter(r, "agora_ws_accepted_total", "WebSocket handshakes that succeeded.", loaded(&s.Accepted))
	counter(r, "agora_ws_refused_total", "WebSocket handshakes refused with an HTTP error.", loaded(&s.Refused))
	counter(r, "agora_ws_frames_in_total", "Frames received from agents.", loaded(&s.FramesIn))
	counter(r, "agora_ws_bytes_in_total", "Bytes of frames received from agents.", loaded(&s.BytesIn))
	counter(r, "agora_ws_frames_out_total", "Frames sent to agents.", loaded(&s.FramesOut))
	counter(r, "agora_ws_bytes_out_total", "Bytes sent to agents.", loaded(&s.BytesOut))
	counter(r, "agora_ws_writes_total", "System calls that wrote to agents' sockets; one may write many frames.", loaded(&s.Writes))
	counter(r, "agora_ws_stalled_total", "Connections closed because the client did not read what was sent to it (write time-out).", loaded(&s.Stalled))
	counter(r, "agora_ws_silent_total", "Connections closed because the client sent nothing and had registered no agent (read time-out).", loaded(&s.Silent))
	for code, n := range s.Errors {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agora_ws_errors_total", Help: "Error frames sent to agents, by error code.",
			ConstLabels: prometheus.Labels{"code": string(code)},
		}, loaded(n)))
	}
}

// registerHTTP registers what is asked over HTTP without a WebSocket.
func registerHTTP(r *prometheus.Registry, s *web.Stats) {
	gauge(r, "agora_http_requests", "HTTP requests that are being answered.", loaded(&s.Open))
	gauge(r, "agora_http_streams", "HTTP requests whose answer lasts: event streams, and calls that wait for their answer.", loaded(&s.Lasting))
	counter(r, "agora_http_accepted_total", "HTTP requests that were authenticated and within limits.", loaded(&s.Admitted))
	counter(r, "agora_http_refused_total", "HTTP requests answered with an error.", loaded(&s.Refused))
	counter(r, "agora_http_bytes_in_total", "Bytes of the contents of HTTP requests.", loaded(&s.BytesIn))
	counter(r, "agora_http_bytes_out_total", "Bytes of the contents of HTTP responses.", loaded(&s.BytesOut))
	counter(r, "agora_http_stalled_total", "HTTP responses given up because the client did not read them (write time-out).", loaded(&s.Stalled))
	for code, n := range s.Errors {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agora_http_errors_total", Help: "HTTP requests answered with an error, by error code.",
			ConstLabels: prometheus.Labels{"code": string(code)},
		}, loaded(n)))
	}
}

// registerPort registers what clients did wrong in speaking HTTP/2.
func registerPort(r *prometheus.Registry, p *port) {
	counter(r, "agora_http2_errors_total", "HTTP/2 streams and connections ended because the client broke the protocol, or did too much of what costs it nothing.", loaded(&p.faults))
}

func registerLog(r *prometheus.Registry, b *broker.Broker) {
	for _, c := range []struct {
		name, help string
		read       func(broker.Stats) uint64
	}{
		{"records", "Batches of messages stored in JetStream, each as one of its messages.", func(s broker.Stats) uint64 { return s.Records }},
		{"parts", "Messages and stream chunks stored in JetStream, in batches.", func(s broker.Stats) uint64 { return s.Parts }},
		{"duplicates", "Messages and stream chunks that were sent again and not stored twice.", func(s broker.Stats) uint64 { return s.Duplicates }},
		{"retries", "Publishes to JetStream repeated because no acknowledgement came.", func(s broker.Stats) uint64 { return s.Retries }},
		{"refusals", "Messages and stream chunks refused: out of order, or JetStream did not take them.", func(s broker.Stats) uint64 { return s.Refusals }},
		{"fences", "Times that publishes of a session's earlier edge were fenced off in JetStream.", func(s broker.Stats) uint64 { return s.Fences }},
		{"deposed", "Send queues given up because another edge has taken the session over.", func(s broker.Stats) uint64 { return s.Deposed }},
		{"delivered", "Messages and stream chunks handed to sessions of their receivers.", func(s broker.Stats) uint64 { return s.Delivered }},
		{"refills", "Reads of JetStream for a receiver that live messages don't suffice for: it came late, or reads slowly.", func(s broker.Stats) uint64 { return s.Refills }},
		{"gaps", "Times that a receiver was sent a gap: messages expired, overflowed or were purged before it read them.", func(s broker.Stats) uint64 { return s.Gaps }},
		{"dropped", "Batches that came live and were left in JetStream for later, because the receiver reads slowly.", func(s broker.Stats) uint64 { return s.Dropped }},
		{"repaired", "Receivers that had missed a live message, as the periodic comparison with JetStream found.", func(s broker.Stats) uint64 { return s.Repaired }},
		{"void", "Batches not delivered because JetStream stored them long after they were sent; the senders got no receipt.", func(s broker.Stats) uint64 { return s.Void }},
	} {
		counter(r, "agora_log_"+c.name+"_total", c.help, func() float64 { return float64(c.read(b.Stats())) })
	}
	gauge(r, "agora_log_lanes", "Open send queues: one for each session and addressee.", func() float64 { return float64(b.Stats().Lanes) })
	gauge(r, "agora_clock_skew_seconds", "Seconds that the machine's clock is ahead of the clocks of the NATS servers.", func() float64 { return b.Stats().Skew.Seconds() })
	gauge(r, "agora_log_inboxes", "Open receive queues: one for each agent, and for each space with members at this edge.", func() float64 { return float64(b.Stats().Inboxes) })
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
