//go:build chaos

package reliability

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// failoverLease is longer than a failover takes: an edge whose lease is over writes all its claims again.
const failoverLease = 8 * time.Second

// TestNothingIsLostWhenSentinelFailsOver kills the Redis master, whose last writes may not have reached the next one.
func TestNothingIsLostWhenSentinelFailsOver(t *testing.T) {
	c := start(t, agoratest.ProcessOptions{Lease: failoverLease, Sentinel: true})
	t.Log(sentinelCell().run(t, c, 0, "", "").row())
}

func sentinelCell() cell {
	return cell{name: "the Redis master is killed, Sentinel fails over", fault: failOver, aborts: true}
}

// failOver loses, with the master, that an agent has moved to another edge; then it moves once more.
func failOver(s *stage) {
	s.Sentinel.Detach()
	s.move(0)
	s.Sentinel.KillMaster()
	s.lasts(failoverLease + time.Second) // each edge looks after its claims once in a lease
	s.move(0)
}

// move has an agent come back at another edge, while the socket that it has stays open.
func (s *stage) move(i int) {
	s.talk.Abandon(i)
	s.lasts(500 * time.Millisecond)
	s.talk.Progress(5)
}
