package config

import (
	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/broker"
)

// callSettings bound calls, and say how their answers are kept.
type callSettings struct {
	ofAgent, ofEdge int
	replicas        int
	shardBytes      size
}

func (s *callSettings) flags(f *pflag.FlagSet) {
	f.IntVar(&s.ofAgent, "limits.calls", 1024, "calls open at one edge by one agent, or for one")
	f.IntVar(&s.ofEdge, "limits.edge.calls", 16384, "calls open at one edge")
	f.IntVar(&s.replicas, "calls.replicas", 0, "copies of each answer of a call in the log: 1, 3 or 5; 0 for as many as nats.replicas")
	s.shardBytes = 64 << 20
	f.Var(&s.shardBytes, "calls.shard-bytes", "bytes kept in each of the log's streams for the answers of calls; full, it refuses them")
}

func (s *callSettings) faults() []error {
	return []error{
		unless(s.ofAgent >= 1, "limits.calls must be at least 1"),
		unless(s.ofEdge >= 1, "limits.edge.calls must be at least 1"),
		unless(s.replicas >= 0 && s.replicas <= 5, "calls.replicas must be 1, 3 or 5, or 0 for as many as nats.replicas"),
		unless(s.shardBytes >= 1<<20, "calls.shard-bytes must be at least 1MiB"),
	}
}

// keeps returns how the log keeps answers.
func (s *callSettings) keeps() broker.Keeps {
	return broker.Keeps{Replicas: s.replicas, ShardBytes: int64(s.shardBytes)}
}
