package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/latency"
	"github.com/agora-relay/agora/presence"
)

// Every label of a metric has values that the program knows beforehand, or that the operator has set up: none comes
// from an agent. So no agent can make them more.

// collector makes the metrics of one part when somebody asks.
type collector struct {
	descs   []*prometheus.Desc
	collect func(send func(prometheus.Metric, error))
}

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	c.collect(func(m prometheus.Metric, err error) {
		if err == nil {
			to <- m
		}
	})
}

// metricOf names a metric and its labels.
func metricOf(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// histograms registers histograms of one name, told apart by a label.
func histograms(r *prometheus.Registry, name, help, label string, by map[string]*latency.Histogram) {
	var labels []string
	if label != "" {
		labels = []string{label}
	}
	d := metricOf(name, help, labels...)
	r.MustRegister(collector{[]*prometheus.Desc{d}, func(send func(prometheus.Metric, error)) {
		for value, h := range by {
			s := h.Read()
			below := make(map[float64]uint64, len(s.Below))
			for k, n := range s.Below {
				below[latency.Bounds[k].Seconds()] = n
			}
			send(prometheus.NewConstHistogram(d, s.Count, s.Sum.Seconds(), below, []string{value}[:len(labels)]...))
		}
	}})
}

func registerHealth(r *prometheus.Registry, e *edgeServer) {
	gauge(r, "agora_nats_connected", "1 while the edge is connected to NATS, else 0.", func() float64 { return truth(e.backends.broker.Connected()) })
	counter(r, "agora_nats_reconnects_total", "Reconnects to NATS.",
		func() float64 { return float64(e.backends.broker.Health().Reconnects) })
	registerTraffic(r, e.backends.broker)
	registerShards(r, e.backends.broker)
	registerRedis(r, e.backends.presence)
	histograms(r, "agora_lease_renewal_seconds", "Duration of renewals of the edge's lease in Redis.", "",
		map[string]*latency.Histogram{"": e.node.Stats().Renewals})
	gauge(r, "agora_lease_left_seconds", "Seconds until the edge's lease in Redis ends; from 0 down the edge serves nobody.",
		func() float64 { return e.node.Stats().LeaseLeft.Seconds() })
	gauge(r, "agora_sweep_timestamp_seconds", "When the edge last ended all sessions that are over without an error, in seconds since 1970.",
		func() float64 { return float64(e.node.Stats().Swept.UnixMilli()) / 1000 })
	counter(r, "agora_lease_failures_total", "Renewals of the edge's lease in Redis that failed.", func() float64 { return float64(e.node.Stats().Unrenewed) })
}

func registerTraffic(r *prometheus.Registry, b *broker.Broker) {
	bytes := metricOf("agora_nats_bytes_total", "Bytes received from NATS (in) and sent to it (out).", "direction")
	msgs := metricOf("agora_nats_messages_total", "Messages received from NATS (in) and sent to it (out).", "direction")
	r.MustRegister(collector{[]*prometheus.Desc{bytes, msgs}, func(send func(prometheus.Metric, error)) {
		h := b.Health()
		count := func(d *prometheus.Desc, n uint64, direction string) {
			send(prometheus.NewConstMetric(d, prometheus.CounterValue, float64(n), direction))
		}
		count(bytes, h.InBytes, "in")
		count(bytes, h.OutBytes, "out")
		count(msgs, h.InMsgs, "in")
		count(msgs, h.OutMsgs, "out")
	}})
}

func registerShards(r *prometheus.Registry, b *broker.Broker) {
	bytes := metricOf("agora_log_shard_bytes", "Bytes that a JetStream stream of Agora's holds, as its leader answered last.", "stream")
	limit := metricOf("agora_log_shard_limit_bytes", "Bytes at which the stream takes no more messages (mailbox.shard-bytes, of calls calls.shard-bytes, of the book 64 MiB).", "stream")
	led := metricOf("agora_log_shard_led", "1 if the stream's leader answered when it was asked last, else 0.", "stream")
	r.MustRegister(collector{[]*prometheus.Desc{bytes, limit, led}, func(send func(prometheus.Metric, error)) {
		for _, s := range b.Shards() {
			send(prometheus.NewConstMetric(bytes, prometheus.GaugeValue, float64(s.Bytes), s.Stream))
			send(prometheus.NewConstMetric(limit, prometheus.GaugeValue, float64(s.Limit), s.Stream))
			send(prometheus.NewConstMetric(led, prometheus.GaugeValue, truth(s.Led), s.Stream))
		}
	}})
}

func registerRedis(r *prometheus.Registry, p *presence.Store) {
	gauge(r, "agora_redis_connections", "Open connections to Redis in the pool.", func() float64 { return float64(p.Health().Open) })
	gauge(r, "agora_redis_connections_idle", "Connections to Redis in the pool that nobody uses.", func() float64 { return float64(p.Health().Idle) })
	counter(r, "agora_redis_pool_timeouts_total", "Times that no connection to Redis in the pool became free in time.", func() float64 { return float64(p.Health().Timeouts) })
	counter(r, "agora_redis_stale_total", "Connections to Redis removed from the pool because they were broken or too old.", func() float64 { return float64(p.Health().Stale) })
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
