package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

func TestWhatManyLanesHaveInHandIsAnsweredInTimeThoughTheLogStaysAway(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) {
		cfg.URL, cfg.GiveUp, cfg.Election = c.url, 500*time.Millisecond, 300*time.Millisecond
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
	c.sever(true)
	until(t, "the connection is lost", func() bool { return !b.Connected() })
	if fresh.Stuck() {
		t.Error("a lane is stuck at once")
	}
	results := make(chan Result, len(lanes)+1)
	for _, l := range lanes {
		defer l.Close()
		l.Put(text("x"), func(r Result) { results <- r })
	}
	fresh.Put(part(agora.Chunk, "s", "2"), func(r Result) { results <- r })
	until(t, "lanes say that they are stuck", func() bool { return fresh.Stuck() && lanes[0].Stuck() && lanes[1].Stuck() })
	for n := range cap(results) {
		select {
		case r := <-results:
			wantCode(t, r, agora.Unavailable)
		case <-time.After(500*time.Millisecond + lookPatience + 2*time.Second):
			t.Fatalf("%d of %d are answered", n, cap(results))
		}
	}
	wantCode(t, put(t, lanes[1], text("at once")), agora.Unavailable)
	c.sever(false)
	for _, l := range append(lanes, fresh) {
		if err := l.Flush(testContext(t)); err != nil {
			t.Fatalf("Flush: %v", err)
		}
		if l.Stuck() {
			t.Error("a lane is stuck though the log is back")
		}
	}
	store(t, lanes[1], text("y"))
	wantCode(t, put(t, fresh, part(agora.Chunk, "s", "3")), agora.StreamAborted)
}
