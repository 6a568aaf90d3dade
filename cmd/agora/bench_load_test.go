package main

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/load"
)

// runEnv says that a process of this binary is to be the program.
const runEnv = "AGORA_TEST_RUN"

// runsAsProgram runs the program in place of the tests if the environment says so.
func runsAsProgram() {
	if os.Getenv(runEnv) != "" {
		os.Unsetenv(runEnv)
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
}

// benchResult runs a bench command that is to end well, and returns its result.
func benchResult(t *testing.T, args string) (out load.Result) {
	t.Helper()
	r := bench(t.Context(), strings.Fields(args+" --json")...)
	if err := json.Unmarshal([]byte(r.stdout), &out); r.status != 0 || err != nil {
		t.Fatalf("%s ended with %d, %v, and says %q, %q", args, r.status, err, r.stdout, r.stderr)
	}
	if l := out.Latency; l == nil || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max || l.Max == 0 {
		t.Errorf("%s: latency is %+v", args, l)
	}
	if out.Sent == 0 || out.Received != out.Expected || out.PerSecond <= 0 || out.Client.PerMessage <= 0 {
		t.Errorf("%s: result is %s", args, r.stdout)
	}
	return out
}

func TestBenchStreamTellsWhatItMeasured(t *testing.T) {
	c := newCLI(t)
	out := benchResult(t, "stream --duration 1s --warmup 300ms --senders 4 --receivers 8 --rate 400 --ack --pid "+strconv.Itoa(os.Getpid())+" --url "+c.url)
	if out.Sent < 390 || out.Sent > 500 || out.Unsent != 0 || out.Received != out.Sent || out.Server == nil || out.Server.RSS == 0 || out.Late == nil {
		t.Errorf("paced: %+v", out)
	}
	out = benchResult(t, "stream --duration 1s --warmup 300ms --senders 8 --receivers 4 --size 20 --url "+c.url)
	if out.Received != out.Sent || out.Server != nil {
		t.Errorf("flat out: %+v", out)
	}
}

func TestBenchStreamOnAClusterOfItsOwn(t *testing.T) {
	t.Setenv(runEnv, "1")
	out := benchResult(t, "stream --embedded --edges 2 --duration 1s --senders 4 --receivers 4 --rate 200")
	if out.Server == nil || out.Server.RSS == 0 || out.Server.CPU == 0 || out.Received < 195 {
		t.Errorf("result is %+v", out)
	}
}

func TestBenchTellsHowToBeUsed(t *testing.T) {
	for _, args := range []string{
		"stream x", "stream --duration 0s", "stream --warmup -1s", "stream --senders 0", "stream --receivers -1", "stream --rate -1", "stream --size 5",
		"stream --window 0", "stream --nonsense", "stream --url http://x", "stream --embedded --edges 0", "stream --embedded --pid 1", "stream --progress -1s",
	} {
		r := bench(t.Context(), strings.Fields(args)...)
		if r.status != 2 || !strings.Contains(r.stderr, "usage: agora bench stream") {
			t.Errorf("%s ended with %d and says %q", args, r.status, r.stderr)
		}
	}
	if r := bench(t.Context(), "stream", "--url", "ws://127.0.0.1:1"); r.status != 6 {
		t.Errorf("without an edge it ended with %d and says %q", r.status, r.stderr)
	}
}
