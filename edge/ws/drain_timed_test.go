//go:build chaos

package ws_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// No second of a drain has many more than another: the busiest is held against all of them together.
func TestTimedADrainAsksAgentsBackEvenly(t *testing.T) {
	const rate, agents = 40, 160
	asked := drained(t, agoratest.Options{Grace: time.Hour, Node: edge.Config{Moving: edge.Moving{Rate: rate}}}, agents, await.Long)
	most := 0
	for i := range asked {
		n := i
		for n < len(asked) && asked[n].back < asked[i].back+time.Second {
			n++
		}
		most = max(most, n-i)
	}
	whole := asked[agents-1].back - asked[0].back
	if each := float64(agents-1) / whole.Seconds(); float64(most) > 1.5*each+2 {
		t.Errorf("%d were asked back within a second, want about as many as in any: %.0f", most, each)
	}
}
