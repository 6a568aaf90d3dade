package loadgen

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen/socket"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire"
)

// alone returns a run of one agent at a pipe, which sends to itself, and the other end of it.
func alone(t *testing.T, cfg Config) (*Run, net.Conn) {
	t.Helper()
	cfg.Kind, cfg.Edges = Stream, []string{"ws://nowhere"}
	r := newRun(cfg)
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	a := r.add(Sends, 0, 0)
	a.watch = true
	a.conn = piped(near)
	r.addLine(a, "b", 1, 1).frames = framed(&wire.Frame{Type: "send_chunk", To: "b", Chunk: quoted(Text(r.cfg.Size))})
	return r, far
}

// piped returns a peer at a pipe.
func piped(near net.Conn) *Peer { return &Peer{Conn: &Conn{Conn: socket.New(near, 0)}} }

// receive takes what is sent, and calls each with the number of each message before it takes it; the first one is a
// greeting.
func receive(r *Run, far net.Conn, each func(k int)) {
	frame := make([]byte, len(r.lines[0].frames.(*Template).frame))
	for k := 0; ; k++ {
		each(k)
		if _, err := io.ReadFull(far, frame); err != nil {
			return
		}
		if s, ok := Find(frame); ok {
			r.agents[0].Arrived(s, now())
		}
	}
}

func TestAStallCountsForEveryMessageThatWasMeantToBeSentInIt(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	r, far := alone(t, Config{Rate: 1000, Duration: 2 * stall, Settle: await.Long})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		receive(r, far, func(k int) {
			if k == 100 {
				<-time.After(stall) // it is what is measured
			}
		})
	})
	out := r.Measure(t.Context(), Servers{})
	far.Close()
	if out.Sent < 590 || out.Unsent != 0 || out.Received != out.Sent {
		t.Errorf("sent %d, received %d, unsent %d; want all of some 600", out.Sent, out.Received, out.Unsent)
	}
	// Half of the messages were meant for the stall. One alone waited in a write.
	if l := out.Latency; l.P90 < 150_000 || l.P99 < 250_000 || l.Max < 290_000 {
		t.Errorf("latency is %+v although nothing was taken for %v", *l, stall)
	}
	if out.Late == nil || out.Late.P99 < 250_000 {
		t.Errorf("senders say they were late by %+v", out.Late)
	}
}

func TestWhatIsNeverSentCountsAsLate(t *testing.T) {
	t.Parallel()
	r, far := alone(t, Config{Rate: 1000, Duration: 200 * time.Millisecond, Settle: 50 * time.Millisecond})
	var wg sync.WaitGroup
	defer wg.Wait()
	stuck := make(chan struct{})
	wg.Go(func() {
		receive(r, far, func(k int) {
			if k == 20 {
				<-stuck
			}
		})
	})
	out := r.Measure(t.Context(), Servers{})
	close(stuck)
	far.Close()
	if all := out.Sent + out.Unsent; out.Sent > 25 || all < 195 || out.Latency.P50 < 50_000 {
		t.Errorf("sent %d, unsent %d, latency %+v", out.Sent, out.Unsent, *out.Latency)
	}
}

func TestFlatOutKeepsNoMoreThanItsWindowUnderWay(t *testing.T) {
	t.Parallel()
	for d := 50 * time.Millisecond; flatOut(t, d) < 100; d *= 4 { // a busy machine may send little in so short a time
		if d > await.Long {
			t.Fatal("next to nothing is sent flat out")
		}
	}
}

// flatOut sends flat out for so long, with a window of 8, and returns how much it has sent.
func flatOut(t *testing.T, d time.Duration) int64 {
	t.Helper()
	r, far := alone(t, Config{Window: 8, Duration: d, Settle: await.Long})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		receive(r, far, func(k int) {
			if under := r.lines[0].sent.Load() - r.lines[0].gate.got.Load(); under > 8 {
				t.Errorf("%d are under way", under)
			}
		})
	})
	out := r.Measure(t.Context(), Servers{})
	far.Close()
	if out.Received != out.Sent || out.Late != nil {
		t.Errorf("result is %+v", out)
	}
	return out.Sent
}

func TestNothingIsMeasuredBeforeEveryLineHasCarriedSomething(t *testing.T) {
	t.Parallel()
	r, far := alone(t, Config{Rate: 1000, Duration: 100 * time.Millisecond, Settle: await.Long})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		receive(r, far, func(k int) {
			if k == 0 {
				<-time.After(300 * time.Millisecond) // what a first message may take
			}
		})
	})
	out := r.Measure(t.Context(), Servers{})
	far.Close()
	if out.Sent < 95 || out.Received != out.Sent || r.lines[0].heard.Load() != 1 {
		t.Errorf("%d were sent: %+v", r.lines[0].sent.Load(), out)
	}
}

func TestAWindowThatIsNotOpenedStopsItsSender(t *testing.T) {
	t.Parallel()
	r, far := alone(t, Config{Window: 8, Duration: time.Hour, Settle: time.Millisecond})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = io.Copy(io.Discard, far) }) // until it is closed
	ctx, end := context.WithCancel(t.Context())
	wg.Go(func() {
		await.Within(await.Long, func() bool { return r.lines[0].sent.Load() >= 8 })
		pause.For(ctx, 100*time.Millisecond) // in which it might send more
		end()
	})
	out := r.Measure(ctx, Servers{})
	far.Close()
	if n := r.lines[0].sent.Load(); n != 8 || !out.Failed() {
		t.Errorf("%d were sent: %+v", n, out)
	}
}

func TestARefusalRestsItsSenderAsLongAsItIsAskedTo(t *testing.T) {
	t.Parallel()
	r, far := alone(t, Config{Window: 1, Duration: 200 * time.Millisecond, Settle: await.Long})
	var wg sync.WaitGroup
	defer wg.Wait()
	a := r.agents[0]
	wg.Go(func() {
		frame, answer := make([]byte, len(r.lines[0].frames.(*Template).frame)), piped(nil)
		for {
			if _, err := io.ReadFull(far, frame); err != nil {
				return
			}
			s, _ := Find(frame)
			if s.Number == hello {
				a.Arrived(s, now())
				continue
			}
			answer.take([]byte(`{"type":"error","code":"RATE_LIMITED","message":"later","request_id":"`+stamped(s)+`","retry_after_ms":3600000}`), a)
		}
	})
	out := r.Measure(t.Context(), Servers{})
	far.Close()
	if n := r.lines[0].sent.Load(); n != 1 || out.Errors["RATE_LIMITED"] != n || out.Missed != 0 {
		t.Errorf("%d were sent: %+v", n, out)
	}
}

func TestWhatIsSentWhileTheWindowOpensOrClosesCountsWhereItIsSentAndWhereItArrives(t *testing.T) {
	t.Parallel()
	for range 20 {
		r, far := alone(t, Config{Window: 64, Warmup: time.Millisecond, Duration: 2 * time.Millisecond, Settle: await.Long})
		var wg sync.WaitGroup
		wg.Go(func() { receive(r, far, func(int) {}) })
		out := r.Measure(t.Context(), Servers{})
		far.Close()
		wg.Wait()
		if out.Received != out.Expected {
			t.Fatalf("%d were sent, and %d arrived", out.Expected, out.Received)
		}
	}
}
