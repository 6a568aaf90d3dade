package edge

import (
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/latency"
)

// SessionStatus is a session by the word of the edge that holds it.
type SessionStatus struct {
	Since     time.Time `json:"since"`
	Begun     bool      `json:"begun"`
	Confirmed uint64    `json:"confirmed"`
	Written   uint64    `json:"written"`
	Acks      bool      `json:"acks"`           // it acknowledges by itself; else pongs tell
	Queued    int       `json:"queued_bytes"`   // live records that wait for its socket
	Blocked   bool      `json:"blocked"`        // its socket is not read: too much under way
	Withheld  bool      `json:"withheld"`       // the edge may not deliver at the moment
	HeardMS   int64     `json:"heard_ms"`       // since its last sign of life
	Over      bool      `json:"over,omitempty"` // it only flushes what is under way
}

// EdgeStatus is what an edge says of itself.
type EdgeStatus struct {
	Ready     string           `json:"ready"` // "yes", or why not
	Draining  bool             `json:"draining"`
	Since     time.Time        `json:"since"`
	Sessions  int64            `json:"sessions"`
	Started   int64            `json:"sessions_started"`
	Ended     map[string]int64 `json:"sessions_ended"`
	Stored    int64            `json:"messages_stored"`
	LeaseLeft float64          `json:"lease_left_seconds"`
	Log       bool             `json:"log_connected"`
	Skew      float64          `json:"clock_skew_seconds"`
	Lanes     int64            `json:"lanes"`
	Inboxes   int64            `json:"inboxes"`
	Held      int64            `json:"queued_bytes"`
}

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
	Renewals  *latency.Histogram // how long the renewals of the lease took that succeeded, some round trips to presence; it continues counting
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
