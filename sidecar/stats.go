package sidecar

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/agora-relay/agora/wire/p2p"
)

// stats counts what goes through a sidecar.
type stats struct {
	requests  atomic.Int64 // by libp2p
	failures  atomic.Int64 // of them
	delivered atomic.Int64 // messages and events that the agent has taken
	refused   atomic.Int64 // messages that no path is set for
	dropped   atomic.Int64 // messages and events that the agent did not take
}

func (s *stats) asked(err error) {
	s.requests.Add(1)
	if p2p.FaultOf(err) != nil {
		s.failures.Add(1)
	}
}

// writeMetrics writes the counters as Prometheus reads them.
func (a *api) writeMetrics(w io.Writer) {
	places := 0
	if m := a.member.Load(); m != nil {
		places = m.peer.relays.count()
	}
	for _, m := range []struct {
		name, kind, help string
		value            int64
	}{
		{"peer_requests_total", "counter", "Cards and handoffs asked for by libp2p.", a.stats.requests.Load()},
		{"peer_failures_total", "counter", "Those of them that were answered by a failure, or broke off.", a.stats.failures.Load()},
		{"delivered_total", "counter", "Messages and events that the agent has taken.", a.stats.delivered.Load()},
		{"refused_total", "counter", "Messages that were refused because no path is set for them.", a.stats.refused.Load()},
		{"dropped_total", "counter", "Messages and events that the agent did not take.", a.stats.dropped.Load()},
		{"agent_up", "gauge", "Whether the agent showed its card when it was asked last.", number(a.up.isHere())},
		{"connected", "gauge", "Whether the agent has its connection to the cluster.", number(a.state.joined.Load())},
		{"relays", "gauge", "Relays at which the agent has a place.", int64(places)},
	} {
		fmt.Fprintf(w, "# HELP agora_sidecar_%s %s\n# TYPE agora_sidecar_%s %s\nagora_sidecar_%s %d\n", m.name, m.help, m.name, m.kind, m.name, m.value)
	}
}

func number(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
