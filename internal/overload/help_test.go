//go:build chaos

package overload

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
	t       *testing.T
	over    atomic.Bool
	running sync.WaitGroup

	mu   sync.Mutex // guards the field below
	took []time.Duration
}

// pulse is how often each of them sends.
const pulse = 50 * time.Millisecond

func listenIn(t *testing.T, urls ...string) *everybodyElse {
	t.Helper()
	e := &everybodyElse{t: t}
	for k := range 10 {
		from, to := fmt.Sprintf("from-%d", k), fmt.Sprintf("to-%d", k)
		r, err := join(urls[k%len(urls)], to, loadgen.Target{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := join(urls[(k+1)%len(urls)], from, loadgen.Target{})
		if err != nil {
			t.Fatal(err)
		}
		e.running.Go(func() { e.send(s, to) })
		e.running.Go(func() { e.hear(s, "") })
		e.running.Go(func() { e.hear(r, from) })
		t.Cleanup(func() { r.socket.Close(); s.socket.Close() })
	}
	t.Cleanup(func() { e.over.Store(true) })
	return e
}

func (e *everybodyElse) send(a *agent, to string) {
	for n := 1; !e.over.Load(); n++ {
		if err := a.say(`{"type":"send","to":%q,"n":%d,"payload":{"at":%d}}`, to, n, time.Now().UnixNano()); err != nil {
			return
		}
		<-time.After(pulse)
	}
}

// hear takes what comes: receipts, or the messages of one other, all of them and in order.
func (e *everybodyElse) hear(a *agent, from string) {
	for want := uint64(1); ; {
		f, err := a.Next()
		switch {
		case err != nil && !e.over.Load():
			e.t.Errorf("%s lost its connection: %v", a.id, err)
			return
		case err != nil:
			return
		case field(f, "type") == "error":
			e.t.Errorf("%s got %s", a.id, f)
		case field(f, "type") != "message":
			continue
		case number(f, "n") != want:
			e.t.Errorf("%s got %d of %s, want %d", a.id, number(f, "n"), from, want)
			return
		}
		want++
		e.mu.Lock()
		e.took = append(e.took, time.Since(time.Unix(0, int64(number(f, "at")))))
		e.mu.Unlock()
	}
}

// median returns the median over a time from now.
func (e *everybodyElse) median(while func()) time.Duration {
	e.t.Helper()
	e.mu.Lock()
	e.took = nil
	e.mu.Unlock()
	while()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.took) < 20 {
		e.t.Fatalf("only %d messages arrived", len(e.took))
	}
	slices.Sort(e.took)
	return e.took[len(e.took)/2]
}

// unmoved fails the test unless everybody else's median stayed within three
// times what it was; a busy machine may always take some milliseconds.
func (e *everybodyElse) unmoved(before, now time.Duration) {
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
