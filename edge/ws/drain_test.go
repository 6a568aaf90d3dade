package ws_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// departure is what an agent was asked, since the drain began.
type departure struct{ told, away, back time.Duration }

// drained connects agents to edge 0, drains it, and returns what they were asked, in the order in which they are asked back.
func drained(t *testing.T, c *agoratest.Cluster, agents int, within time.Duration) (asked []departure) {
	t.Helper()
	var all []*agoratest.Client
	for k := range agents {
		all = append(all, register(t, c, fmt.Sprintf("agent-%d", k)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var reading sync.WaitGroup
	var mu sync.Mutex
	begun := time.Now()
	for _, a := range all {
		reading.Go(func() {
			f, ok := a.Next(within + 5*time.Second)
			at := time.Since(begun)
			if !ok || f.Type() != "agent.reconnect" {
				t.Errorf("got %q, want agent.reconnect", f)
			}
			mu.Lock()
			defer mu.Unlock()
			away := time.Duration(f.Uint("after_ms")) * time.Millisecond
			asked = append(asked, departure{at, away, at + away})
		})
	}
	c.Node(0).Drain(ctx)
	reading.Wait()
	for _, a := range all {
		a.AwaitClosed(edge.CloseRestart)
	}
	slices.SortFunc(asked, func(a, b departure) int { return cmp.Compare(a.back, b.back) })
	return asked
}

// atMost fails the test when more than so many fall into any second, half as many more for who reads late.
func atMost(t *testing.T, rate int, asked []departure) {
	t.Helper()
	for i := range asked {
		n := i
		for n < len(asked) && asked[n].back < asked[i].back+time.Second {
			n++
		}
		if n-i > rate*3/2+2 {
			t.Errorf("from %v on %d were asked back within a second, want %d at most", asked[i].back, n-i, rate)
			return
		}
	}
}

func TestADrainingEdgeAsksItsAgentsBackAtItsRate(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{4, 60} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			c := agoratest.Start(t, agoratest.Options{Edges: 1, Grace: time.Minute, Node: edge.Config{DrainRate: rate}})
			asked := drained(t, c, 2*rate+1, 20*time.Second)
			atMost(t, rate, asked)
			last := asked[2*rate]
			if last.back < 1900*time.Millisecond {
				t.Errorf("the last one was asked back after %v, want about 2 s", last.back)
			}
			if last.away > 200*time.Millisecond {
				t.Errorf("the last one was to stay away for %v: want it told when it is its turn", last.away)
			}
		})
	}
}

func TestADrainThatRunsShortOfTimeTellsTheRestAtOnceToComeLater(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	const rate = 20
	c := agoratest.Start(t, agoratest.Options{Edges: 1, Grace: time.Minute, Node: edge.Config{DrainRate: rate}})
	asked := drained(t, c, 8*rate, 4*time.Second)
	atMost(t, rate, asked)
	last := asked[len(asked)-1]
	if last.told > 4*time.Second {
		t.Errorf("the last one was told after %v, want it before the drain's end", last.told)
	}
	if last.back < 7500*time.Millisecond {
		t.Errorf("the last one was asked back after %v, want about 8 s", last.back)
	}
}

func TestADrainKeepsNobodyAwayForLongerThanHalfTheGrace(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 1, Grace: 4 * time.Second, Node: edge.Config{DrainRate: 1}})
	for _, a := range drained(t, c, 20, 2*time.Second) {
		if a.away > 2*time.Second {
			t.Errorf("an agent is kept away for %v, want at most half the grace of 4 s", a.away)
		}
	}
}

func TestADrainingEdgeLetsNobodyIn(t *testing.T) {
	c := agoratest.Start(t, agoratest.Options{Edges: 1, Node: edge.Config{DrainRate: 1}})
	register(t, c, "one")
	register(t, c, "two") // is told a second later
	anonymous := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", nil)
	var draining sync.WaitGroup
	defer draining.Wait()
	draining.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c.Node(0).Drain(ctx)
	})
	anonymous.Until("it is not ready", func() bool { return c.Node(0).Ready() != nil })
	_, r, err := agoratest.TryConnect(t, agoratest.Direct{}, c.URL(0), "", nil)
	if err == nil || r == nil || r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("a newcomer: %v %+v, want 503 with Retry-After", err, r)
	}
	anonymous.Send(`{"type":"register","id":"three"}`)
	anonymous.Expect(`{"type":"error","code":"UNAVAILABLE"}`)
}
