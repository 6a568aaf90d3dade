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
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen/soak"
	"github.com/agora-relay/agora/internal/loadgen/verify"
	"github.com/agora-relay/agora/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var kinds = []string{"message", "stream", "chunk", "request", "reply", "event"}

func cluster(t *testing.T) *agoratest.Cluster {
	t.Helper()
	return agoratest.Start(t, agoratest.Options{Grace: time.Hour, Node: edge.Config{Heartbeat: time.Minute}})
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
	r, err := soak.Start(await.Context(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// until waits for a condition of the run's progress.
func until(t *testing.T, r *soak.Run, what string, ok func(soak.Report) bool) {
	t.Helper()
	await.True(t, what, func() bool { return ok(r.Progress()) })
}

// delivered reports whether so much of every kind was delivered.
func delivered(n uint64) func(soak.Report) bool {
	return func(r soak.Report) bool {
		return !slices.ContainsFunc(kinds, func(k string) bool { return r.Kinds[k].Delivered < n })
	}
}

// end stops the run, waits for what is under way, and returns the result.
func end(t *testing.T, r *soak.Run) soak.Report {
	t.Helper()
	ctx := await.Context(t)
	if err := r.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := r.Settle(ctx); err != nil {
		t.Errorf("Settle: %v", err)
	}
	return r.Close()
}

func TestARunLeavesNoMess(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	r := start(t, soak.Config{Edges: urls(c), Spaces: 1, Rate: 400})
	until(t, r, "load", delivered(1))
	end(t, r)
	nobody, err := client.Dial(await.Context(t), client.Config{URLs: urls(c)})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	until(t, r, "an empty cluster", func(soak.Report) bool { // a goodbye is confirmed before all is ended
		agents, err := nobody.Agents(await.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		spaces, err := nobody.Spaces(await.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		return len(agents) == 0 && !slices.ContainsFunc(spaces, func(s client.SpaceInfo) bool { return s.Members > 0 })
	})
}

func TestWithoutAnEdgeNothingStarts(t *testing.T) {
	edges := []string{"ws://127.0.0.1:1"}
	if r, err := soak.Start(await.Context(t), soak.Config{Edges: edges}); err == nil {
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
	t.Parallel()
	cl := agoratest.Start(t, agoratest.Options{Edges: 1, Node: edge.Config{Heartbeat: time.Minute}})
	for name, c := range map[string]struct {
		what string // the frame that is tampered with has this in it
		hand func() func(f *wire.Frame) []*wire.Frame
		want string
	}{
		"a message is lost": {`"soak":"message"`, lose, verify.Lost},
		"a chunk is lost":   {`"type":"message_chunk"`, lose, verify.Lost},
		"an end is lost":    {`"type":"message_end"`, lose, verify.Broken},
		"an event is lost":  {`"type":"space.event"`, lose, verify.Lost},
		"a message doubled": {`"soak":"message"`, double, verify.Duplicated},
		"a message altered": {`"soak":"message"`, alter, verify.Altered},
		"messages swapped":  {`"soak":"message"`, swap, verify.Reordered},
		"chunks swapped":    {`"type":"message_chunk"`, swap, verify.Reordered},
		"an event doubled":  {`"type":"space.event"`, double, verify.Duplicated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tampered atomic.Bool
			hand := c.hand()
			url := agoratest.Tamper(t, cl.URL(0), tamper(c.what, func(f *wire.Frame) []*wire.Frame {
				tampered.Store(true)
				return hand(f)
			}))
			r := start(t, soak.Config{Edges: []string{url}, Senders: 1, Receivers: 1, Spaces: 1, Rate: 400})
			if c.want != verify.Broken {
				until(t, r, "violation", soak.Report.Failed)
			} else {
				until(t, r, "end that is lost", func(soak.Report) bool { return tampered.Load() })
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // for nothing: what is lost never comes
			defer cancel()
			_, _ = r.Stop(ctx), r.Settle(ctx)
			got := r.Close()
			if !slices.ContainsFunc(got.Listed, func(v verify.Violation) bool { return v.Kind == c.want }) {
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
