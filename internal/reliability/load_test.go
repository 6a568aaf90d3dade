package reliability

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen/soak"
)

// load is Go clients under way beside the bare sockets: what they get is theirs once, in order, without a mark.
type load struct{ run *soak.Run }

// startLoad returns when all of its clients are connected; the test's end ends it.
func startLoad(t testing.TB, urls []string) load {
	t.Helper()
	run, err := soak.Start(await.Context(t), soak.Config{
		Edges: urls, Senders: 2, Receivers: 3, Spaces: 1, Rate: 60, Patience: await.Long,
	})
	if err != nil {
		t.Fatalf("start the Go clients: %v", err)
	}
	t.Cleanup(func() { run.Close() })
	return load{run}
}

// progress waits until n more of every kind have been delivered.
func (l load) progress(t testing.TB, n uint64) {
	t.Helper()
	began := l.run.Progress().Kinds
	var lacks []string
	if !await.Within(await.Long, func() bool {
		lacks = nil
		for kind, now := range l.run.Progress().Kinds {
			if was := began[kind]; now.Delivered < was.Delivered+n {
				lacks = append(lacks, fmt.Sprintf("%s: %+v, before %+v", kind, now, was))
			}
		}
		return len(lacks) == 0
	}) {
		t.Fatalf("the Go clients get nothing more of a kind: %s; errors %v", strings.Join(lacks, "; "), l.run.Progress().Errors)
	}
}

// finish waits until everything that was sent has arrived.
func (l load) finish(t testing.TB) soak.Report {
	t.Helper()
	ctx := await.Context(t)
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
	for kind, n := range r.Kinds {
		if n.Delivered == 0 || n.Sent != n.Stored+n.Refused+n.Unknown {
			t.Errorf("Go clients: %s: %+v: none delivered, or does not add up", kind, n)
		}
	}
}
