package iat

import (
	"sync/atomic"

	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/latency"
)

// Stats counts what a door does. All fields may be read at any time.
type Stats struct {
	Downlinks atomic.Int64      // open now, sockets included
	Posts     atomic.Int64      // envelopes that were POSTed
	Chunks    atomic.Int64      // that were taken from agents
	Moved     atomic.Int64      // envelopes that came and went
	Told      latency.Histogram // from a POST of what nobody answers to its being stored
	Asked     latency.Histogram // from a POSTed request to the end of its answer
	Errors    web.Errors        // told
}

func newStats() *Stats { return &Stats{Errors: web.NewErrors()} }
