//go:build chaos

package overload

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen"
)

const mib = 1 << 20

// queued is limits.queued of the edges here.
const queued = 16 * mib

// start starts a cluster whose edges hold little, on a log that costs little.
func start(t *testing.T, flags ...string) *agoratest.Processes {
	t.Helper()
	return agoratest.StartProcesses(t, agoratest.ProcessOptions{Lease: 6 * time.Second, Flags: append([]string{
		"--nats.replicas", "1", "--nats.storage", "memory", "--limits.queued", "16MiB", "--session.timeout", "60s", "--session.grace", "2m",
	}, flags...)})
}

// many returns how many of something a test takes: fewer in a short run.
func many(long, short int) int {
	if testing.Short() {
		return short
	}
	return long
}

// until polls a condition with a deadline.
func until(t *testing.T, within time.Duration, what string, done func() bool) {
	t.Helper()
	if !await.Within(within, done) {
		t.Fatalf("%s: not within %v", what, within)
	}
}

// everybodyElse is pairs of agents, each at two edges, that send each other a
// message now and then while something happens to others; they measure how long one takes.
type everybodyElse struct {
	t    *testing.T
	urls []string
}

const (
	others = 10                    // pairs
	pulse  = 50 * time.Millisecond // how often each of them sends
)

// median returns the median while something happens. All that they send must arrive, once and in order, and nobody may
// be refused anything or lose its connection.
func (e everybodyElse) median(while func()) time.Duration {
	e.t.Helper()
	run, err := loadgen.Start(await.Context(e.t), loadgen.Config{
		Kind: loadgen.OneShot, Edges: e.urls, Senders: others, Rate: others / pulse.Seconds(), Duration: time.Hour, Settle: await.Long,
	})
	if err != nil {
		e.t.Fatal(err)
	}
	defer run.Close()
	ctx, over := context.WithCancel(e.t.Context())
	var got loadgen.Result
	var measuring sync.WaitGroup
	defer measuring.Wait()
	defer over()
	measuring.Go(func() { got = run.Measure(ctx, loadgen.Servers{}) })
	while()
	over()
	measuring.Wait()
	if got.Failed() || len(got.Errors) > 0 || got.Gaps > 0 {
		e.t.Errorf("everybody else: %d sent, %d of %d arrived, %d twice, %d passed over, %d gaps, %d connections lost, errors %v: %s",
			got.Sent, got.Received, got.Expected, got.Twice, got.Missed, got.Gaps, got.Cut, got.Errors, got.First)
	}
	if got.Received < 20 {
		e.t.Fatalf("only %d messages arrived", got.Received)
	}
	return time.Duration(got.Latency.P50) * time.Microsecond
}

// unmoved fails the test unless everybody else's median stayed within three
// times what it was; a busy machine may always take some milliseconds.
func (e everybodyElse) unmoved(before, now time.Duration) {
	e.t.Helper()
	e.t.Logf("everybody else's median: %v before, %v now", before, now)
	if now > 3*max(before, 3*time.Millisecond) {
		e.t.Errorf("everybody else's median went from %v to %v, want three times that at most", before, now)
	}
}

// watch notes the most memory that an edge has, and that it thinks to hold.
type watch struct {
	edge     *agoratest.EdgeProcess
	stop     chan struct{}
	watching sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	rss, held float64
}

func watchMemory(e *agoratest.EdgeProcess) *watch {
	w := &watch{edge: e, stop: make(chan struct{})}
	w.watching.Go(func() {
		for {
			now := e.Metrics("process_resident_memory_bytes", "agora_queued_bytes")
			w.mu.Lock()
			w.rss, w.held = max(w.rss, now["process_resident_memory_bytes"]), max(w.held, now["agora_queued_bytes"])
			w.mu.Unlock()
			select {
			case <-w.stop:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	return w
}

// bounded ends the watch, and fails the test when the edge held more than
// half as much again as it may, or took more memory than that and its connections explain:
// twice what it holds, as the collector lets garbage be as much again.
func (w *watch) bounded(t *testing.T, connections int) {
	t.Helper()
	close(w.stop)
	w.watching.Wait()
	t.Logf("the edge held %.1f MiB at most, its process had %.0f MiB", w.held/mib, w.rss/mib)
	if w.held > queued*3/2 {
		t.Errorf("the edge held %.1f MiB, want %.1f at most", w.held/mib, queued*1.5/mib)
	}
	if most := 80*mib + 3*queued + float64(connections*64<<10); w.rss > most {
		t.Errorf("the edge's process took %.0f MiB, want %.0f at most", w.rss/mib, most/mib)
	}
}
