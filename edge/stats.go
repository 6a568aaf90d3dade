package edge

import "sync/atomic"

// Stats are a node's counters since it started.
type Stats struct {
	Sessions int64 // held now
	Sent     int64 // messages and parts stored for its agents
}

type counters struct {
	sessions, sent atomic.Int64
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	return Stats{Sessions: n.stats.sessions.Load(), Sent: n.stats.sent.Load()}
}
