package aip

import (
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/agora-relay/agora/internal/latency"
)

// Stats counts what a door does. All fields may be read at any time.
type Stats struct {
	Nodes    atomic.Int64 // whose sessions this edge holds
	Links    atomic.Int64 // to other gateways, that this edge holds and that are up
	Calls    atomic.Int64 // sessions and tool calls under way
	In, Out  atomic.Int64 // bytes of messages that came and went
	Redials  atomic.Int64 // connections to nodes that were made again
	Sessions Counted      // sessions of agents
	Tools    Counted      // tool calls
	errors   [codes.Unauthenticated + 1]atomic.Int64
}

// Counted counts calls of one kind, by how they ended.
type Counted struct {
	Took latency.Histogram // from their beginning to their end
	by   [codes.Unauthenticated + 1]atomic.Int64
}

func newStats() *Stats { return &Stats{} }

// Ended returns how many calls have ended with a code.
func (c *Counted) Ended(code codes.Code) int64 { return c.by[code].Load() }

// ended notes that a call has ended with a code.
func (c *Counted) ended(code codes.Code) {
	if int(code) < len(c.by) {
		c.by[code].Add(1)
	}
}

// Errors returns how many calls of any kind have failed with a code.
func (s *Stats) Errors(code codes.Code) int64 { return s.errors[code].Load() }

func (s *Stats) fault(code codes.Code) {
	if int(code) < len(s.errors) {
		s.errors[code].Add(1)
	}
}
