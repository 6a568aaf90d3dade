package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/soak"
)

// bench runs a bench command to its end.
func bench(ctx context.Context, args ...string) cliResult {
	var out, err output
	status := run(ctx, append([]string{"bench"}, args...), nil, &out, &err)
	return cliResult{status, out.String(), err.String()}
}

func TestASoakSaysThatEveryPromiseWasKept(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := newCLI(t)
	args := []string{"soak", "--edges", c.url, "--duration", "2s", "--progress", "500ms", "--cuts", "2", "--senders", "2", "--receivers", "2", "--spaces", "1"}
	r := bench(t.Context(), args...)
	if r.status != 0 || !strings.Contains(r.stdout, "violations: 0") || strings.Count(r.stderr, "delivered") < 2 {
		t.Errorf("it ended with %d and says %q, %q", r.status, r.stdout, r.stderr)
	}
	r = bench(t.Context(), append(args, "--json", "--progress", "0")...)
	var got soak.Report
	if err := json.Unmarshal([]byte(r.stdout), &got); r.status != 0 || err != nil {
		t.Fatalf("it ended with %d, %v, and says %q, %q", r.status, err, r.stdout, r.stderr)
	}
	if k := got.Kinds["event"]; k.Stored == 0 || k.Delivered < 3*k.Stored || got.Cuts == 0 || got.Reconnects == 0 || got.Total.P99 == 0 {
		t.Errorf("result is %s", r.stdout)
	}
}

func TestASoakThatFindsALossEndsWithOne(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	lost := false
	url := agoratest.Tamper(t, c.cluster.URL(0), func(frame []byte) [][]byte {
		if !lost && bytes.Contains(frame, []byte(`"soak":"message"`)) {
			lost = true
			return nil
		}
		return [][]byte{frame}
	})
	r := bench(t.Context(), "soak", "--edges", url, "--duration", "2s", "--settle", "5s", "--spaces", "0", "--receivers", "1")
	if r.status != 1 || !strings.Contains(r.stdout, "violations: 1\n") || !strings.Contains(r.stdout, "lost: soak-") {
		t.Errorf("it ended with %d and says %q, %q", r.status, r.stdout, r.stderr)
	}
}

func TestASoakThatIsInterruptedAccountsForAll(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, told output
	status := make(chan int, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		status <- run(ctx, strings.Fields("bench soak --duration 1h --progress 100ms --json --edges "+c.url), nil, &out, &told)
	})
	eventually(t, "progress", func() bool { return strings.Count(told.String(), "delivered") > 3 })
	cancel()
	var got soak.Report
	if s := <-status; s != 0 || json.Unmarshal([]byte(out.String()), &got) != nil || got.Total.Delivered == 0 {
		t.Errorf("it ended with %d and says %q, %q", s, out.String(), told.String())
	}
}

func TestASoakIsToldHowToBeUsed(t *testing.T) {
	for _, args := range []string{
		"soak x", "soak --duration 0s", "soak --duration x", "soak --senders -1", "soak --rate 0", "soak --cuts -1", "soak --nonsense", "tempest", "--x", "soak --edges http://x",
	} {
		r := bench(t.Context(), strings.Fields(args)...)
		if r.status != 2 || !strings.Contains(r.stderr, "agora") {
			t.Errorf("%s ended with %d and says %q", args, r.status, r.stderr)
		}
	}
	if r := bench(t.Context(), "soak", "--edges", "ws://127.0.0.1:1"); r.status != 6 {
		t.Errorf("without an edge it ended with %d and says %q", r.status, r.stderr)
	}
	if r := bench(t.Context()); r.status != 0 || !strings.Contains(r.stdout, "soak") {
		t.Errorf("bench alone ended with %d and says %q", r.status, r.stdout)
	}
}
