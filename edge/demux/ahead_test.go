package demux

import (
	"context"
	"math"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
)

// oneAtATime returns a Demux that serves one message at a time, each until it is told to go on.
func oneAtATime(t *testing.T) (d *Demux, served chan uint64, free chan struct{}) {
	served, free = make(chan uint64, 9), make(chan struct{})
	d = New(Config{Whole: 1, Queue: 1 << 20, Records: math.MaxInt64, Serve: func(x *Exchange) {
		p, err := x.Next(context.Background())
		if err != nil {
			return
		}
		served <- p.Seq >> agora.SeqShift
		<-free
	}})
	t.Cleanup(d.Close)
	d.position.acked = math.MaxUint64 // there is no session to tell
	return d, served, free
}

// The backlog lags and reads the log, which may bring more than was dispatched by then. Once it is served there is
// room, and what comes live is served at once: but for what the backlog had already.
func TestAMessageThatTheBacklogHasReadAheadOfTheOthersIsServedOnce(t *testing.T) {
	d, served, free := oneAtATime(t)
	say := func(n uint64) edge.Delivery {
		return edge.Delivery{Message: &agora.Message{Kind: agora.Request, From: "a", Seq: n << agora.SeqShift}}
	}
	is := func(want uint64) {
		t.Helper()
		if n := await.Recv(t, "a message is served", served); n != want {
			t.Errorf("message %d is served, want %d", n, want)
		}
	}
	d.hand([]edge.Delivery{say(1)})
	is(1)
	d.hand([]edge.Delivery{say(2)}) // waits
	d.mu.Lock()
	d.backlog.lag(3 << agora.SeqShift)
	d.backlog.caught([]edge.Delivery{say(3), say(4)}, d.position.at)
	d.mu.Unlock()
	d.hand([]edge.Delivery{say(3)})
	for n := range uint64(3) {
		free <- struct{}{}
		is(n + 2)
	}
	free <- struct{}{}
	await.True(t, "there is room", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.whole == 0 && !d.usher && !d.waits()
	})
	d.hand([]edge.Delivery{say(4), say(5)})
	is(5)
	free <- struct{}{}
}

// A gap in the log may reach beyond what was dispatched: what the session still has of that is served as it comes live.
func TestAGapThatTheBacklogReadsHidesNothingThatComesLive(t *testing.T) {
	d, served, free := oneAtATime(t)
	say := func(kind agora.Kind, n uint64) edge.Delivery {
		return edge.Delivery{Message: &agora.Message{Kind: kind, From: "a", N: 3 << agora.SeqShift, Seq: n << agora.SeqShift}}
	}
	d.hand([]edge.Delivery{say(agora.Request, 1), say(agora.Request, 2)})
	d.mu.Lock()
	d.backlog.lag(3 << agora.SeqShift)
	_, lost := d.backlog.caught([]edge.Delivery{say(agora.Gap, 4), say(agora.Request, 5)}, d.position.at)
	d.mu.Unlock()
	if len(lost) > 0 {
		t.Errorf("the door is told of %v, which may come", lost[0].Message)
	}
	d.hand([]edge.Delivery{say(agora.Request, 3), say(agora.Request, 4), say(agora.Request, 5)})
	for want := range uint64(5) {
		if n := await.Recv(t, "a message is served", served); n != want+1 {
			t.Errorf("message %d is served, want %d", n, want+1)
		}
		free <- struct{}{}
	}
}
