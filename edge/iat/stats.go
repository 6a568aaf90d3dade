package iat

import (
	"sync/atomic"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/latency"
)

// Stats counts what a door does. All fields may be read at any time.
type Stats struct {
	Downlinks atomic.Int64                 // open now, sockets included
	Posts     atomic.Int64                 // envelopes that were POSTed
	Chunks    atomic.Int64                 // that were taken from agents
	Moved     atomic.Int64                 // envelopes that came and went
	Told      latency.Histogram            // from a POST of what nobody answers to its being stored
	Asked     latency.Histogram            // from a POSTed request to the end of its answer
	Errors    map[agora.Code]*atomic.Int64 // told, by code; the map never changes
}

func newStats() *Stats {
	s := &Stats{Errors: map[agora.Code]*atomic.Int64{}}
	for _, c := range agora.Codes() {
		s.Errors[c] = new(atomic.Int64)
	}
	return s
}

func (s *Stats) fault(c agora.Code) {
	if n := s.Errors[c]; n != nil {
		n.Add(1)
	}
}
