package broker

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// busy has an edge believe that so many records of its are on their way, and the one who has to wait does so until
// haveTurn.
func busy(b *Broker, records int64) {
	b.coalescer.inFlight.Store(records)
	b.coalescer.mu.Lock()
	b.coalescer.last = agora.Ticks() + int64(time.Hour)
	b.coalescer.mu.Unlock()
}

func (l *Lane) waitsForOthers() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turn == awaitsTurn && l.inflight == nil
}

func TestLanesOfABusyEdgeGatherAndLeaveTogether(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	busy(b, coalesceFrom)
	results := make(chan Result, 6)
	var lanes []*Lane
	for _, to := range []agora.AgentID{"bob", "carol"} {
		l := b.Lane(LaneConfig{From: "alice", Session: "s", Epoch: 1, To: agora.ToAgent("default", to)})
		defer l.Close()
		lanes = append(lanes, l)
		for n := range 3 {
			l.Put(agora.Message{N: uint64(n + 1), Body: []byte("x")}, func(r Result) { results <- r })
		}
	}
	for k, l := range lanes {
		if !l.waitsForOthers() {
			t.Fatalf("lane %d of a busy edge does not wait", k)
		}
	}
	b.coalescer.timer.Reset(0)
	for range cap(results) {
		if r := await.Recv(t, "what waited is sent", results); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if n := b.Stats().Records; n != uint64(len(lanes)) {
		t.Errorf("%d records of %d lanes, want one each", n, len(lanes))
	}
	if n := b.coalescer.inFlight.Load(); n != coalesceFrom {
		t.Errorf("%d records are on their way that have arrived", n-coalesceFrom)
	}
}

func TestALaneOfAnEdgeWithLittleOnItsWayDoesNotWait(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	busy(b, coalesceFrom-1)
	l := b.Lane(LaneConfig{From: "alice", Session: "s", Epoch: 1, To: bob})
	defer l.Close()
	store(t, l, text("x"))
}

func TestALaneThatWaitsIsNotIdleAndCanBeClosed(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	busy(b, coalesceFrom)
	l := b.Lane(LaneConfig{From: "alice", Session: "s", Epoch: 1, To: bob})
	results := make(chan Result, 1)
	l.Put(text("x"), func(r Result) { results <- r })
	if _, parked := l.Park(true); parked {
		t.Fatal("a lane that waits was put aside with what it holds")
	}
	l.Close()
	wantCode(t, await.Recv(t, "what waited is answered", results), agora.Unavailable)
	b.coalescer.timer.Reset(0)
	await.True(t, "nobody waits", func() bool { return !l.waitsForOthers() })
	if n := b.Stats().Records; n != 0 {
		t.Errorf("%d records of a closed lane", n)
	}
}

func TestHowLongLanesWaitFollowsHowLongRecordsTake(t *testing.T) {
	var g coalescer
	for _, c := range []struct{ took, want time.Duration }{
		{100 * time.Microsecond, coalesceMin}, {6 * time.Millisecond, 3 * time.Millisecond}, {time.Second, coalesceMax},
	} {
		for range 1000 {
			g.observe(c.took)
		}
		if got := g.pause().Round(100 * time.Microsecond); got != c.want {
			t.Errorf("records take %v: lanes wait %v, want %v", c.took, got, c.want)
		}
	}
}
