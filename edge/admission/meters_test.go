package admission

import (
	"fmt"
	"testing"

	"github.com/agora-relay/agora"
)

// Meters that count nothing any more are forgotten; one that does is the same the one who asks for it.
func TestMetersOfWhoSaysNothingMoreAreForgotten(t *testing.T) {
	var m meters
	busy := m.get(agora.ToAgent("t", "busy"))
	slow := rate{perSecond: 1e-6, burst: 1}
	if busy.messages.spend(slow, 1, false) != 0 || busy.messages.spend(slow, 1, false) == 0 {
		t.Fatal("a bucket with one token gave none, or two")
	}
	for k := range 10 * leastMeters {
		m.get(agora.ToAgent("t", agora.AgentID(fmt.Sprint(k))))
	}
	if len(m.of) > leastMeters {
		t.Errorf("%d meters are kept, want %d at most", len(m.of), leastMeters)
	}
	if m.get(agora.ToAgent("t", "busy")) != busy {
		t.Error("the meter of an agent that has spent its rate was forgotten")
	}
}
