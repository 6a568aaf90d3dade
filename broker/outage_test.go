package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

func TestWhatManyLanesHaveInHandIsAnsweredThoughTheLogStaysAway(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	const election = 300 * time.Millisecond
	b := testBroker(t, s, func(cfg *Config) {
		cfg.URL, cfg.GiveUp, cfg.Election = c.Addr(), 500*time.Millisecond, election
	})
	var lanes []*Lane
	for i := range 2 * lanesReading { // more than may ask the log at a time
		cfg := lane("s1", 1, i%2 == 0) // every other one has to ask it before its first record
		cfg.To = agora.ToAgent("default", agora.AgentID(fmt.Sprint("r", i)))
		lanes = append(lanes, b.Lane(cfg))
	}
	fresh := b.Lane(lane("s1", 1, false))
	defer fresh.Close()
	store(t, fresh, part(agora.Start, "s", "1"))
	cut := time.Now()
	c.Cut()
	await.True(t, "the connection is lost", func() bool { return !b.Connected() })
	if fresh.Stuck() && time.Since(cut) < election {
		t.Error("a lane is stuck at once")
	}
	results := make(chan Result, len(lanes)+1)
	for _, l := range lanes {
		defer l.Close()
		l.Put(text("x"), func(r Result) { results <- r })
	}
	fresh.Put(part(agora.Chunk, "s", "2"), func(r Result) { results <- r })
	await.True(t, "lanes say that they are stuck", func() bool { return fresh.Stuck() && lanes[0].Stuck() && lanes[1].Stuck() })
	for n := range cap(results) {
		wantCode(t, await.Recv(t, fmt.Sprintf("answer %d of %d", n+1, cap(results)), results), agora.Unavailable)
	}
	wantCode(t, put(t, lanes[1], text("at once")), agora.Unavailable)
	c.Reset()
	for _, l := range append(lanes, fresh) {
		if err := l.Flush(await.Context(t)); err != nil {
			t.Fatalf("Flush: %v", err)
		}
		if l.Stuck() {
			t.Error("a lane is stuck though the log is back")
		}
	}
	store(t, lanes[1], text("y"))
	wantCode(t, put(t, fresh, part(agora.Chunk, "s", "3")), agora.StreamAborted)
}
