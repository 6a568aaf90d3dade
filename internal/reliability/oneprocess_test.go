package reliability

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// TestNothingIsLostWhateverFails has agents at bare sockets and Go clients talk in one process, where the race detector
// can see all of it, while sockets are cut, the log's leaders move, edges die, drain and come, and presence forgets
// everything. What was receipted must arrive once and in order, and nobody may be refused anything permanently.
func TestNothingIsLostWhateverFails(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{
		Nodes: 3, Redis: true, Grace: time.Minute, Node: edge.Config{DeltaThreshold: 1000, Lease: lease, Timeout: timeout, Heartbeat: heartbeat},
	})
	talk := agoratest.StartTalk(t, c.URLs, agoratest.TalkOptions{Agents: 4, Beat: 80 * time.Millisecond, Silence: silence})
	load := startLoad(t, c.URLs())
	die := []int{0, 1} // not the third, so that the Go clients, which know the first three, always find one
	next := func() int {
		k := die[0]
		die = append(die[1:], c.AddEdge())
		return k
	}
	progress := func() {
		for range 5 { // as many as there are Go clients
			load.run.Cut()
		}
		talk.Progress(5)
		load.progress(t, 1)
	}
	talk.Mark()
	for i := range rounds {
		for k := range 4 {
			talk.Kick(k)
		}
		progress()
		for _, s := range c.Streams() {
			c.StepDown(s)
			talk.Kick(i)
		}
		progress()
		c.CutEdge(next())
		progress()
		c.Redis.Stop()
		c.Redis.Start()
		progress()
		c.StopEdge(next())
		progress()
	}
	total, refused := talk.Settle()
	t.Logf("%d frames, each once and in order; %d refused", total, refused)
	if refused > 0 {
		t.Errorf("%d of %d frames were refused for good, want none; agents saw %v", refused, total, talk.Recovery().Codes)
	}
	got := load.finish(t)
	judgeLoad(t, got)
	if got.Cuts == 0 || got.Reconnects == 0 {
		t.Errorf("Go clients: %d cuts, %d reconnects, want some", got.Cuts, got.Reconnects)
	}
}
