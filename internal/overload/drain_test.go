//go:build chaos

package overload

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
)

// TestAnEdgeEndsInTimeWhateverIsAway asks edges to end whose log, presence or
// both do not answer any more, and have not said so.
func TestAnEdgeEndsInTimeWhateverIsAway(t *testing.T) {
	const drain, more = 3 * time.Second, time.Second // more is for a busy machine
	c := agoratest.StartProcesses(t, agoratest.ProcessOptions{Flags: []string{"--drain.timeout", drain.String()}})
	for k, away := range []struct {
		about string
		cut   func(*agoratest.EdgeProcess)
	}{
		{"the log", func(e *agoratest.EdgeProcess) { e.SilenceLog() }},
		{"presence", func(e *agoratest.EdgeProcess) { e.Presence.Silence() }},
		{"both", func(e *agoratest.EdgeProcess) { e.SilenceLog(); e.Presence.Silence() }},
	} {
		t.Run(away.about, func(t *testing.T) {
			c.Under(t)
			e := c.Edges[k]
			for n := range 20 {
				a := agoratest.Connect(t, agoratest.Direct{}, e.URL(), "", nil)
				a.Send(fmt.Sprintf(`{"type":"register","id":"agent-%d-%d"}`, k, n))
				a.Expect(`{"type":"registered"}`)
				a.Send(fmt.Sprintf(`{"type":"send","id":"m","to":"agent-%d-0","payload":1}`, k))
				a.Await(`{"type":"receipt"}`)
			}
			away.cut(e)
			begun := time.Now()
			e.Drain()
			if took := time.Since(begun); took > drain+more {
				t.Errorf("it ended after %v, want %v at most", took, drain+more)
			} else {
				t.Logf("ended after %v", took)
			}
		})
		c.Under(t)
	}
}
