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
	Ended     map[string]int64 // sessions that left, by the name of their cause
	Sent      int64            // messages and parts stored for its agents
	Unrenewed int64            // renewals of the lease that failed
	LeaseLeft time.Duration    // how long the lease still holds; below zero where it does not
	Swept     time.Time        // when the sessions that are over were last ended without an error
	Draining  bool
	Renewals  *latency.Histogram // how long the renewals of the lease took that succeeded, some round trips to presence; it goes on counting
}

// counters have a line of the cache to themselves: sent changes with every
// message, and what stands beside it is read with every message, on other cores.
type counters struct {
	_              [64]byte
	sessions, sent atomic.Int64
	_              [64]byte
	started        atomic.Int64
	ended          [len(causes)]atomic.Int64 // by cause
	toWritten      latency.Histogram         // from stored to written to a socket
}
