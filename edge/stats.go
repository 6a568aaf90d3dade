package edge

import (
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/latency"
)

// Stats are a node's counters since it started.
type Stats struct {
	Sessions  int64            // held now, those that only flush included
	Started   int64            // sessions begun here
	Ended     map[string]int64 // sessions that left, by the reason: one of Reasons
	Sent      int64            // messages and parts stored for its agents
	Unrenewed int64            // renewals of the lease that failed
	LeaseLeft time.Duration    // how long the lease still holds; below zero where it does not
	Draining  bool
}

// counters have a line of the cache to themselves: sent changes with every
// message, and what stands beside it is read with every message, on other cores.
type counters struct {
	_              [64]byte
	sessions, sent atomic.Int64
	_              [64]byte
	started        atomic.Int64
	cards          atomic.Int64 // bytes of what agents said of themselves
	ended          [len(causes)]atomic.Int64
	toWritten      latency.Histogram // from stored to written to a socket
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	s := Stats{
		Sessions: n.stats.sessions.Load(), Started: n.stats.started.Load(), Sent: n.stats.sent.Load(),
		Unrenewed: n.owner.Lease().Failed(), LeaseLeft: n.owner.Lease().Left(), Draining: n.draining.Load(), Ended: make(map[string]int64, len(causes)),
	}
	for k, name := range causes {
		s.Ended[string(name)] = n.stats.ended[k].Load()
	}
	return s
}

// ToWritten returns how long messages took from being stored to being written to the socket of an agent that was
// there, by the log's clock: the oldest of what one write took counts.
func (n *Node) ToWritten() *latency.Histogram { return &n.stats.toWritten }

// Renewals returns how long the renewals of the lease took that succeeded: some round trips to presence.
func (n *Node) Renewals() *latency.Histogram { return n.owner.Lease().Renewals() }
