package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen"
)

// runEnv says that a process of this binary is to be the program.
const runEnv = "AGORA_TEST_RUN"

// runsAsProgram runs the program in place of the tests if the environment says so.
func runsAsProgram() {
	if os.Getenv(runEnv) != "" && os.Getenv(serverEnv) == "" {
		os.Unsetenv(runEnv)
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
}

// benchResult runs a bench command for so long, which is to end well, and returns its result. On a busy machine nothing
// may be sent, or arrive, in so short a time: then it gets more.
func benchResult(t *testing.T, d time.Duration, args string) (out loadgen.Result) {
	t.Helper()
	for ; (out.Sent == 0 || out.PerSecond == 0) && d < await.Long; d *= 4 {
		r := runBench(t.Context(), strings.Fields(args+" --json --warmup "+(d/2).String()+" --duration "+d.String()+" --settle "+await.Long.String())...)
		if err := json.Unmarshal([]byte(r.stdout), &out); r.status != 0 || err != nil {
			t.Fatalf("%s ended with %d, %v, and says %q, %q", args, r.status, err, r.stdout, r.stderr)
		}
	}
	if l := out.Latency; l == nil || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max || l.Max == 0 {
		t.Errorf("%s: latency is %+v", args, l)
	}
	if out.Sent == 0 || out.Received != out.Expected || out.PerSecond <= 0 || out.Client.PerMessage <= 0 {
		t.Errorf("%s: result is %+v", args, out)
	}
	return out
}

func TestBenchStreamTellsWhatItMeasured(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	out := benchResult(t, 100*time.Millisecond, "stream --senders 4 --receivers 8 --rate 400 --ack --pid "+strconv.Itoa(os.Getpid())+" --url "+c.url)
	if out.Sent < 38 || out.Unsent != 0 || out.Received != out.Sent || out.Server == nil || out.Server.RSS == 0 || out.Late == nil {
		t.Errorf("paced: %+v", out)
	}
	out = benchResult(t, 100*time.Millisecond, "stream --senders 8 --receivers 4 --size 20 --url "+c.url)
	if out.Received != out.Sent || out.Server != nil {
		t.Errorf("flat out: %+v", out)
	}
}

func TestBenchStreamOnAClusterOfItsOwn(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	out := benchResult(t, 100*time.Millisecond, "stream --embedded --edges 2 --senders 4 --receivers 4 --rate 200")
	if out.Server == nil || out.Server.RSS == 0 || out.Server.CPU == 0 || out.Server.Heap == 0 || out.Received < 18 {
		t.Errorf("result is %+v", out)
	}
}

func TestBenchOneShotTellsOfReceipts(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	out := benchResult(t, 100*time.Millisecond, "oneshot --senders 4 --receivers 2 --rate 200 --url "+c.url)
	if out.Receipt == nil || out.Receipt.Max == 0 || out.Sent < 18 {
		t.Errorf("paced: %+v", out)
	}
	out = benchResult(t, 100*time.Millisecond, "oneshot --senders 2 --receivers 2 --in-flight 4 --url "+c.url)
	if out.Receipt == nil || out.Late != nil {
		t.Errorf("flat out: %+v", out)
	}
}

func TestBenchFanOutCountsArrivals(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := newCLI(t)
	for _, args := range []string{"--rate 50", "--senders 2 --window 8"} {
		out := benchResult(t, 100*time.Millisecond, "fanout --members 10 --url "+c.url+" "+args)
		if out.Received != 10*out.Sent {
			t.Errorf("%s: %+v", args, out)
		}
	}
}

func TestBenchStormTellsWhenEachHasCaughtUp(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := newCLI(t)
	r := runBench(t.Context(), strings.Fields("storm --json --agents 20 --missed 30 --live 4 --live-rate 100 --live-calm 100ms --settle "+await.Long.String()+" --url "+c.url)...)
	var out loadgen.StormResult
	if err := json.Unmarshal([]byte(r.stdout), &out); r.status != 0 || err != nil {
		t.Fatalf("it ended with %d, %v, and says %q, %q", r.status, err, r.stdout, r.stderr)
	}
	if l := out.Live; l == nil || l.Streams != 4 || l.Calm == nil || l.Storm == nil || l.Lost != 0 {
		t.Errorf("of the streams that went on it says %s", r.stdout)
	}
	if out.Returned != 20 || out.Whole != 20 || out.Received != 600 || out.Expected != 600 || out.CaughtUp == nil || out.CaughtUp.Max < out.Connected.P50 {
		t.Errorf("result is %s", r.stdout)
	}
}

func TestBenchIdleTellsWhatConnectionsCost(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	for _, args := range []string{"--processes 1 --url " + newCLI(t).url, "--processes 2 --embedded --edges 2"} {
		r := runBench(t.Context(), strings.Fields("idle --json --agents 50 --warmup 1ms --duration 100ms "+args)...)
		var out printedIdle
		if err := json.Unmarshal([]byte(r.stdout), &out); r.status != 0 || err != nil {
			t.Fatalf("%s ended with %d, %v, and says %q, %q", args, r.status, err, r.stdout, r.stderr)
		}
		s := out.Server
		if out.Agents != 50 || out.Lost != 0 || (s != nil) != strings.Contains(args, "embedded") {
			t.Errorf("%s: result is %s", args, r.stdout)
		}
		if s != nil && (s.Before <= 0 || s.After <= 0 || s.Per != float64(s.After-s.Before)/50 || s.HeapPer != float64(s.HeapAfter-s.HeapBefore)/50 || s.ConnectCPU <= 0) {
			t.Errorf("%s: result is %s", args, r.stdout)
		}
	}
}

func TestBenchDrawsLatencyByRate(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := newCLI(t)
	file := filepath.Join(t.TempDir(), "latency.svg")
	args := "stream --duration 100ms --warmup 50ms --senders 2 --receivers 2 --rates 100,200 --settle " + await.Long.String() + " --url " + c.url + " --svg " + file
	r := runBench(t.Context(), strings.Fields(args+" --json")...)
	var out struct{ Runs []loadgen.Result }
	if err := json.Unmarshal([]byte(r.stdout), &out); r.status != 0 || err != nil || len(out.Runs) != 2 {
		t.Fatalf("it ended with %d, %v, and says %q, %q", r.status, err, r.stdout, r.stderr)
	}
	if out.Runs[0].Rate != 100 || out.Runs[1].Rate != 200 || out.Runs[1].Received == 0 {
		t.Errorf("result is %s", r.stdout)
	}
	b, err := os.ReadFile(file)
	if err != nil || xml.Unmarshal(b, new(struct{})) != nil || strings.Count(string(b), "<circle") != 4 {
		t.Errorf("the picture is %s, %v", b, err)
	}
	if r := runBench(t.Context(), strings.Fields(args+"/x/y")...); r.status != 1 {
		t.Errorf("without a place for the picture it ended with %d and says %q", r.status, r.stderr)
	}
}

func TestBenchShowsAStallOfTheCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	const stall = 400 * time.Millisecond
	c, frames := newCLI(t), 0
	slow := agoratest.Tamper(t, c.cluster.URL(1), func(frame []byte) [][]byte {
		if frames++; frames == 80 {
			<-time.After(stall) // it is what is measured
		}
		return [][]byte{frame}
	})
	out := benchResult(t, time.Second, "stream --senders 2 --receivers 2 --rate 200 --url "+c.cluster.URL(0)+","+slow)
	if out.Latency.P99 < 200_000 { // of those that were meant for it, who are 80 of 200
		t.Errorf("a stall of %v shows as %+v", stall, *out.Latency)
	}
}

func TestBenchThatIsInterruptedTellsWhatItMeasured(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, told output
	status := make(chan int, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		args := "bench stream --senders 2 --receivers 2 --warmup 100ms --duration 1h --rates 100,200 --progress 20ms --json --settle " + await.Long.String() + " --url "
		status <- run(ctx, strings.Fields(args+c.url), nil, &out, &told)
	})
	await.True(t, "progress", func() bool { return strings.Count(told.String(), "p99") > 3 })
	cancel()
	var got struct{ Runs []loadgen.Result }
	if s := <-status; s != 0 || json.Unmarshal([]byte(out.String()), &got) != nil || len(got.Runs) != 1 || got.Runs[0].Received == 0 {
		t.Errorf("it ended with %d and says %q, %q", s, out.String(), told.String())
	}
}

func TestBenchThatMissesMessagesEndsWithOne(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c, lost := newCLI(t), 0
	url := agoratest.Tamper(t, c.cluster.URL(0), func(frame []byte) [][]byte {
		if bytes.HasPrefix(frame, []byte(`{"type":"message_chunk"`)) {
			if lost++; lost == 3 {
				return nil
			}
		}
		return [][]byte{frame}
	})
	r := runBench(t.Context(), strings.Fields("stream --senders 1 --receivers 1 --warmup 0s --duration 500ms --rate 100 --settle 1s --url "+url)...)
	if r.status != 1 || !strings.Contains(r.stdout, "1 were passed over") {
		t.Errorf("it ended with %d and says %q, %q", r.status, r.stdout, r.stderr)
	}
}

func TestBenchTellsHowToBeUsed(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"oneshot --in-flight 0", "fanout --senders 3 --members 2", "storm --agents 0", "storm --missed 0", "storm --settle 0s", "storm --live 1 --live-rate 0", "storm --live-calm -1s", "idle --agents 0",
		"idle --processes 0", "idle --processes 2 --agents 1", "idle --duration 0s", "idle --dialing -1", "idle --url x", "storm --url x", "idle x", "storm --x",
		"stream x", "stream --duration 0s", "stream --warmup -1s", "stream --senders 0", "stream --receivers -1", "stream --rate -1", "stream --size 5",
		"stream --window 0", "stream --nonsense", "stream --url ftp://x", "stream --embedded --edges 0", "stream --embedded --pid 1", "stream --progress -1s",
		"stream --rates 0", "stream --rates x", "stream --svg x", "oneshot --admin x", "idle --embedded --admin http://x",
	} {
		r := runBench(t.Context(), strings.Fields(args)...)
		if r.status != 2 || !strings.Contains(r.stderr, "usage: agora bench "+strings.Fields(args)[0]) {
			t.Errorf("%s ended with %d and says %q", args, r.status, r.stderr)
		}
	}
	for _, verb := range []string{"stream", "oneshot", "fanout", "storm", "idle --warmup 0s"} {
		if r := runBench(t.Context(), strings.Fields(verb+" --url ws://127.0.0.1:1")...); r.status != 6 {
			t.Errorf("without an edge %s ended with %d and says %q", verb, r.status, r.stderr)
		}
	}
}
