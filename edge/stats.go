package edge

import "sync/atomic"

// Stats are a node's counters since it started.
type Stats struct {
	Sessions int64 // held now
	Sent     int64 // messages and parts stored for its agents
}

// counters have a line of the cache to themselves: sent changes with every
// message, and what stands beside it is read with every message, on other cores.
type counters struct {
	_              [64]byte
	sessions, sent atomic.Int64
	_              [64]byte
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	return Stats{Sessions: n.stats.sessions.Load(), Sent: n.stats.sent.Load()}
}
