package main

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen/soak"
)

// runBench runs a bench command to its end.
func runBench(ctx context.Context, args ...string) cliResult {
	var out, err output
	status := run(ctx, append([]string{"bench"}, args...), nil, &out, &err)
	return cliResult{status, out.String(), err.String()}
}

func TestASoakSaysThatEveryPromiseWasKept(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	r := runBench(t.Context(), strings.Fields("soak --duration 300ms --senders 2 --receivers 2 --spaces 1 --settle "+await.Long.String()+" --edges "+c.url)...)
	if r.status != 0 || !strings.Contains(r.stdout, "violations: 0") {
		t.Errorf("it ended with %d and says %q, %q", r.status, r.stdout, r.stderr)
	}
}

// interrupted runs a soak until enough has come to be, and returns its result.
func interrupted(t *testing.T, args string, enough func(told string) bool) cliResult {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, told output
	status := make(chan int, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	args = "bench soak --duration 1h --progress 20ms --senders 2 --receivers 2 --settle " + await.Long.String() + " " + args
	wg.Go(func() { status <- run(ctx, strings.Fields(args), nil, &out, &told) })
	await.True(t, "what the soak is for", func() bool { return enough(told.String()) || len(status) > 0 })
	cancel()
	return cliResult{<-status, out.String(), told.String()}
}

func TestASoakThatFindsALossEndsWithOne(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	var messages atomic.Int64
	url := agoratest.Tamper(t, c.cluster.URL(0), func(frame []byte) [][]byte {
		if bytes.Contains(frame, []byte(`"soak":"message"`)) && messages.Add(1) == 3 {
			return nil
		}
		return [][]byte{frame}
	})
	r := interrupted(t, "--spaces 0 --edges "+url, func(string) bool { return messages.Load() > 20 })
	if r.status != 1 || !strings.Contains(r.stdout, "violations: 1\n") || !strings.Contains(r.stdout, "lost: soak-") {
		t.Errorf("it ended with %d and says %q, %q", r.status, r.stdout, r.stderr)
	}
}

func TestASoakThatIsInterruptedAccountsForAll(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := newCLI(t)
	cut := regexp.MustCompile(`delivered [1-9]\d{2,}  .* cuts [1-9]\d*  reconnects [1-9]`)
	r := interrupted(t, "--spaces 1 --cuts 5 --json --edges "+c.url, cut.MatchString)
	var got soak.Report
	if err := json.Unmarshal([]byte(r.stdout), &got); r.status != 0 || err != nil {
		t.Fatalf("it ended with %d, %v, and says %q, %q", r.status, err, r.stdout, r.stderr)
	}
	if k := got.Kinds["event"]; k.Delivered < 3*k.Stored || got.Total.Stored == 0 || got.Cuts == 0 || got.Reconnects == 0 || got.Total.P99 == 0 {
		t.Errorf("result is %s", r.stdout)
	}
}

func TestASoakIsToldHowToBeUsed(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"soak x", "soak --duration 0s", "soak --duration x", "soak --senders -1", "soak --rate 0", "soak --cuts -1", "soak --nonsense", "tempest", "--x", "soak --edges ftp://x",
	} {
		r := runBench(t.Context(), strings.Fields(args)...)
		if r.status != 2 || !strings.Contains(r.stderr, "agora") {
			t.Errorf("%s ended with %d and says %q", args, r.status, r.stderr)
		}
	}
	if r := runBench(t.Context(), "soak", "--edges", "ws://127.0.0.1:1"); r.status != 6 {
		t.Errorf("without an edge it ended with %d and says %q", r.status, r.stderr)
	}
	if r := runBench(t.Context()); r.status != 0 || !strings.Contains(r.stdout, "soak") {
		t.Errorf("bench alone ended with %d and says %q", r.status, r.stdout)
	}
}
