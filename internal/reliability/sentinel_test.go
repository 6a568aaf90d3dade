package reliability

import (
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
)

// TestNothingIsLostWhenSentinelFailsOver kills the Redis master, whose last writes may not have reached the next one.
func TestNothingIsLostWhenSentinelFailsOver(t *testing.T) {
	c := agoratest.StartProcesses(t, agoratest.ProcessOptions{Lease: lease, Sentinel: true})
	x := cell{name: "the Redis master is killed, Sentinel fails over", fault: failOver, aborts: true}
	x.run(t, c, 0, "")
}

func failOver(s *stage) {
	s.Sentinel.KillMaster()
}
