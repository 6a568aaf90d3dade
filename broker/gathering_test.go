package broker

import (
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// busy has an edge believe that so many records of its are on their way, and whoever has to wait does so until letGo.
func busy(b *Broker, records int64) {
	b.gathering.air.Store(records)
	b.gathering.mu.Lock()
	b.gathering.last = agora.Ticks() + int64(time.Hour)
	b.gathering.mu.Unlock()
}

func (l *Lane) waitsForOthers() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held && l.flight == nil
}

func TestLanesOfABusyEdgeGatherAndLeaveTogether(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	busy(b, crowded)
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
	b.gathering.timer.Reset(0)
	for range cap(results) {
		if r := await.Recv(t, "what waited is sent", results); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if n := b.Stats().Records; n != uint64(len(lanes)) {
		t.Errorf("%d records of %d lanes, want one each", n, len(lanes))
	}
	if n := b.gathering.air.Load(); n != crowded {
		t.Errorf("%d records are on their way that have arrived", n-crowded)
	}
}

func TestALaneOfAnEdgeWithLittleOnItsWayDoesNotWait(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	busy(b, crowded-1)
	l := b.Lane(LaneConfig{From: "alice", Session: "s", Epoch: 1, To: bob})
	defer l.Close()
	store(t, l, text("x"))
}

func TestALaneThatWaitsIsNotIdleAndCanBeClosed(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	busy(b, crowded)
	l := b.Lane(LaneConfig{From: "alice", Session: "s", Epoch: 1, To: bob})
	results := make(chan Result, 1)
	l.Put(text("x"), func(r Result) { results <- r })
	if _, parked := l.Park(true); parked {
		t.Fatal("a lane that waits was put aside with what it holds")
	}
	l.Close()
	wantCode(t, await.Recv(t, "what waited is answered", results), agora.Unavailable)
	b.gathering.timer.Reset(0)
	await.True(t, "nobody waits", func() bool { return !l.waitsForOthers() })
	if n := b.Stats().Records; n != 0 {
		t.Errorf("%d records of a closed lane", n)
	}
}

func TestHowLongLanesWaitFollowsHowLongRecordsTake(t *testing.T) {
	var g gathering
	for _, c := range []struct{ took, want time.Duration }{
		{100 * time.Microsecond, waitMin}, {6 * time.Millisecond, 3 * time.Millisecond}, {time.Second, waitMax},
	} {
		for range 1000 {
			g.landed(c.took)
		}
		if got := g.pause().Round(100 * time.Microsecond); got != c.want {
			t.Errorf("records take %v: lanes wait %v, want %v", c.took, got, c.want)
		}
	}
}
