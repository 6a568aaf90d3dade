package edge

import "time"

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
