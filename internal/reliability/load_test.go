package reliability

import (
	"context"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/soak"
)

// load is Go clients under way beside the bare sockets: what they get is theirs once, in order, without a mark.
type load struct{ run *soak.Run }

// startLoad returns when all of its clients are connected; the test's end ends it.
func startLoad(t testing.TB, c *agoratest.Processes) load {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	run, err := soak.Start(ctx, soak.Config{Edges: c.URLs(), Senders: 2, Receivers: 3, Spaces: 1, Rate: 60})
	if err != nil {
		t.Fatalf("start the Go clients: %v", err)
	}
	t.Cleanup(func() { run.Close() })
	return load{run}
}

// finish waits until everything that was sent has arrived.
func (l load) finish(t testing.TB) soak.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	defer cancel()
	if err := l.run.Stop(ctx); err != nil {
		t.Errorf("calls of the Go clients do not return: %v", err)
	}
	if err := l.run.Settle(ctx); err != nil {
		t.Errorf("the Go clients: %v", err)
	}
	return l.run.Close()
}

// judgeLoad holds what the Go clients saw to what is promised whatever dies.
func judgeLoad(t testing.TB, r soak.Report) {
	t.Helper()
	n := r.Total
	t.Logf("Go clients: %d sent, %d delivered, %d refused, %d streams aborted, %d reconnects; errors %v", n.Sent, n.Delivered, n.Refused, n.Aborted, r.Reconnects, r.Errors)
	for _, v := range r.Listed {
		t.Errorf("Go clients: %+v", v)
	}
	if r.Failed() || n.Lost != 0 || n.Duplicated != 0 || n.Reordered != 0 || r.Gaps != 0 {
		t.Errorf("Go clients: %d lost, %d twice, %d out of order, %d gaps, want none", n.Lost, n.Duplicated, n.Reordered, r.Gaps)
	}
}
