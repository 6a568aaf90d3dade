package ws_test

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/agoratest"
)

// TestNothingIsLostWhateverFails has agents talk while sockets are cut, edges
// die, drain and come, the log's leaders move and presence forgets everything.
// What was receipted must arrive once and in order.
func TestNothingIsLostWhateverFails(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{
		Nodes: 3, Redis: true, Grace: time.Minute, Door: ws.Config{DeltaThreshold: 1000}, Node: edge.Config{Lease: 4 * time.Second},
	})
	talk := agoratest.StartTalk(t, c.URLs, agoratest.TalkOptions{Agents: 4, Beat: 40 * time.Millisecond})
	streams := c.Streams()
	progress := func() { talk.Progress(5) }
	for i := range 5 {
		for k := range 4 {
			talk.Kick(k)
		}
		progress()
		for _, s := range streams {
			c.StepDown(s)
			talk.Kick(i)
		}
		progress()
		c.CutEdge(c.Edges()[0])
		c.AddEdge()
		progress()
		c.Redis.Stop()
		c.Redis.Start()
		progress()
		c.StopEdge(c.Edges()[0])
		c.AddEdge()
		progress()
	}
	total, refused := talk.Settle()
	t.Logf("%d frames, each once and in order; %d refused", total, refused)
	if refused > 0 {
		t.Errorf("%d of %d frames were refused for good, want none", refused, total)
	}
}
