package soak_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/soak"
	"github.com/agora-relay/agora/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var kinds = []string{"message", "stream", "chunk", "request", "reply", "event"}

// within returns a context that ends after that time.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func cluster(t *testing.T) *agoratest.Cluster {
	t.Helper()
	return agoratest.Start(t, agoratest.Options{Grace: 20 * time.Second})
}

func urls(c *agoratest.Cluster) (all []string) {
	for k := range c.Size() {
		all = append(all, c.URL(k))
	}
	return all
}

func start(t *testing.T, cfg soak.Config) *soak.Run {
	t.Helper()
	cfg.Backoff = client.Backoff{Min: 10 * time.Millisecond, Max: 200 * time.Millisecond}
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := soak.Start(within(t, 20*time.Second), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// until waits for a condition of the run's progress.
func until(t *testing.T, r *soak.Run, what string, ok func(soak.Report) bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx := within(t, time.Minute); !ok(r.Progress()); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not come to be: %+v", what, r.Progress())
		}
	}
}

// delivered tells whether so much of every kind was delivered.
func delivered(n uint64) func(soak.Report) bool {
	return func(r soak.Report) bool {
		return !slices.ContainsFunc(kinds, func(k string) bool { return r.Kinds[k].Delivered < n })
	}
}

// end stops the run, waits for what is under way, and returns the result.
func end(t *testing.T, r *soak.Run) soak.Report {
	t.Helper()
	ctx := within(t, time.Minute)
	if err := r.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := r.Settle(ctx); err != nil {
		t.Errorf("Settle: %v", err)
	}
	return r.Close()
}

func TestEveryPromiseIsKeptThroughCutsAndDyingEdges(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	c := cluster(t)
	c.AddEdge()
	r := start(t, soak.Config{Edges: urls(c), Senders: 2, Receivers: 2, Spaces: 1, Rate: 150, Cuts: 1})
	const rounds = 3
	until(t, r, "load", delivered(rounds))
	c.StopEdge(0)
	until(t, r, "load after a drain", delivered(2*rounds))
	c.CutEdge(1)
	until(t, r, "load after a cut edge", delivered(4*rounds))
	got := end(t, r)
	if got.Failed() || got.Gaps > 0 {
		t.Errorf("%d violations: %v, gaps: %d, errors: %v", got.Violations, got.Listed[:min(5, len(got.Listed))], got.Gaps, got.Errors)
	}
	if got.Cuts == 0 || got.Reconnects == 0 || got.Total.P99 <= 0 {
		t.Errorf("cuts %d, reconnects %d, p99 %v: want some of each", got.Cuts, got.Reconnects, got.Total.P99)
	}
	for _, k := range kinds {
		if n := got.Kinds[k]; n.Sent != n.Stored+n.Refused+n.Unknown {
			t.Errorf("%s: %+v does not add up", k, n)
		}
	}
}

func TestARunLeavesNoMess(t *testing.T) {
	c := cluster(t)
	r := start(t, soak.Config{Edges: urls(c), Spaces: 1, Rate: 400})
	until(t, r, "load", delivered(1))
	end(t, r)
	nobody, err := client.Dial(within(t, 20*time.Second), client.Config{URLs: urls(c)})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	until(t, r, "an empty cluster", func(soak.Report) bool { // a goodbye is confirmed before all is ended
		agents, err := nobody.Agents(within(t, 20*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		spaces, err := nobody.Spaces(within(t, 20*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return len(agents) == 0 && !slices.ContainsFunc(spaces, func(s client.SpaceInfo) bool { return s.Members > 0 })
	})
}

func TestWithoutAnEdgeNothingStarts(t *testing.T) {
	edges := []string{"ws://127.0.0.1:1"}
	if r, err := soak.Start(within(t, 20*time.Second), soak.Config{Edges: edges}); err == nil {
		t.Errorf("started %s", r.Name())
	}
	for _, cfg := range []soak.Config{{}, {Edges: []string{"x"}}, {Edges: edges, Rate: -1}, {Edges: edges, Senders: -1}, {Edges: edges, Cuts: -1}} {
		if cfg.Check() == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// A cluster that keeps its promises is not enough to trust the account: here
// is a wire that breaks them, in ways that the client can't repair.
func TestWhatTheWireLosesDoublesOrSwapsIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	for name, c := range map[string]struct {
		what string // the frame that is tampered with has this in it
		hand func() func(f *wire.Frame) []*wire.Frame
		want string
	}{
		"a message is lost": {`"soak":"message"`, lose, soak.Lost},
		"a chunk is lost":   {`"type":"message_chunk"`, lose, soak.Lost},
		"an end is lost":    {`"type":"message_end"`, lose, soak.Broken},
		"an event is lost":  {`"type":"space.event"`, lose, soak.Lost},
		"a message doubled": {`"soak":"message"`, double, soak.Duplicated},
		"a message altered": {`"soak":"message"`, alter, soak.Altered},
		"messages swapped":  {`"soak":"message"`, swap, soak.Reordered},
		"chunks swapped":    {`"type":"message_chunk"`, swap, soak.Reordered},
		"an event doubled":  {`"type":"space.event"`, double, soak.Duplicated},
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			cl := agoratest.Start(t, agoratest.Options{Edges: 1})
			var tampered atomic.Bool
			hand := c.hand()
			url := agoratest.Tamper(t, cl.URL(0), tamper(c.what, func(f *wire.Frame) []*wire.Frame {
				tampered.Store(true)
				return hand(f)
			}))
			r := start(t, soak.Config{Edges: []string{url}, Senders: 1, Receivers: 1, Spaces: 1, Rate: 400})
			if c.want != soak.Broken {
				until(t, r, "violation", soak.Report.Failed)
			} else {
				until(t, r, "end that is lost", func(soak.Report) bool { return tampered.Load() })
			}
			ctx := within(t, 3*time.Second)
			if r.Stop(ctx) != nil || r.Settle(ctx) != nil {
				t.Log("not all has come in time")
			}
			got := r.Close()
			if !slices.ContainsFunc(got.Listed, func(v soak.Violation) bool { return v.Kind == c.want }) {
				t.Errorf("violations = %v, want one of %s", got.Listed, c.want)
			}
		})
	}
}

// tamper lets hand have the second frame with something in it, and those that follow.
func tamper(what string, hand func(*wire.Frame) []*wire.Frame) func([]byte) [][]byte {
	n := 0
	return func(b []byte) (out [][]byte) {
		var f wire.Frame
		if !bytes.Contains(b, []byte(what)) || wire.DecodeAnswer(slices.Clone(b), &f) != nil {
			return [][]byte{b}
		}
		if n++; n < 2 {
			return [][]byte{b}
		}
		for _, f := range hand(&f) {
			out = append(out, f.Append(nil))
		}
		return out
	}
}

func lose() func(*wire.Frame) []*wire.Frame {
	lost := false
	return func(f *wire.Frame) []*wire.Frame {
		if lost {
			return []*wire.Frame{f}
		}
		lost = true
		return nil
	}
}

// double repeats a frame as one that the client can't know.
func double() func(*wire.Frame) []*wire.Frame {
	done := false
	return func(f *wire.Frame) []*wire.Frame {
		if done {
			return []*wire.Frame{f}
		}
		done = true
		again := *f
		again.Seq, again.N, again.Session = f.Seq+1, 0, ""
		return []*wire.Frame{f, &again}
	}
}

// swap hands a frame on behind the next one of its type, as one that the client can't know.
func swap() func(*wire.Frame) []*wire.Frame {
	var held *wire.Frame
	done := false
	return func(f *wire.Frame) []*wire.Frame {
		switch {
		case done:
			return []*wire.Frame{f}
		case held == nil:
			c := *f
			held = &c
			return nil
		}
		done = true
		held.Seq, held.N, held.Session = f.Seq+1, 0, ""
		return []*wire.Frame{f, held}
	}
}

func alter() func(*wire.Frame) []*wire.Frame {
	return func(f *wire.Frame) []*wire.Frame {
		f.Payload = append(slices.Clone(f.Payload[:len(f.Payload)-1]), " }"...)
		return []*wire.Frame{f}
	}
}
