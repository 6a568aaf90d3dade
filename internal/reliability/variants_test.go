//go:build chaos

package reliability

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// TestNothingIsLostWhenSentinelFailsOverToAnEmptyServer has the next master know nothing.
func TestNothingIsLostWhenSentinelFailsOverToAnEmptyServer(t *testing.T) {
	c := start(t, agoratest.ProcessOptions{Lease: lease, Sentinel: true})
	x := cell{name: "the Redis master is killed, Sentinel fails over to an empty one", fault: func(s *stage) { s.Sentinel.LoseAll() }, aborts: true}
	x.run(t, c, 0, "", "")
}

// TestNothingIsLostWhenANodeOfARedisClusterIsLost kills each node of three, which comes back without its data.
func TestNothingIsLostWhenANodeOfARedisClusterIsLost(t *testing.T) {
	c := start(t, agoratest.ProcessOptions{Lease: lease, Sharded: true})
	for k := range 3 {
		name := fmt.Sprintf("node %d of a Redis Cluster is killed, and comes back empty", k)
		t.Run(name, func(t *testing.T) {
			x := cell{name: name, aborts: true, fault: func(s *stage) {
				s.Sharded.Stop(k)
				s.lasts(2 * time.Second)
				s.Sharded.Start(t, k)
			}}
			x.run(t, c, k, "", "")
		})
		c.Under(t)
	}
}
