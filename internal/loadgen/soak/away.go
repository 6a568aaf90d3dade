package soak

import (
	"sync"
	"time"

	"github.com/agora-relay/agora/client"
)

// away measures how long the agents of a run are without a connection.
type away struct {
	mu      sync.Mutex // guards the fields below
	since   map[string]time.Time
	longest time.Duration // of those that are over
}

// status takes what a client says of the agent's connection, now.
func (a *away) status(agent string, s client.Status, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	began, gone := a.since[agent]
	switch {
	case s.Err != nil && !gone:
		a.since[agent] = now
	case s.Err == nil && gone:
		delete(a.since, agent)
		a.longest = max(a.longest, now.Sub(began))
	}
}

// most returns the longest time for which an agent was, or is until now, without a connection.
func (a *away) most(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	most := a.longest
	for _, began := range a.since {
		most = max(most, now.Sub(began))
	}
	return most
}
