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
	"github.com/agora-relay/agora/internal/await"
)

// departure is what an agent was asked, since the drain began.
type departure struct{ told, away, back time.Duration }

// drained connects agents to the edge of a cluster, drains it within some time, and returns what they were asked, in the order in
// which they are asked back. It returns nothing when the time was over before all were.
func drained(t *testing.T, o agoratest.Options, agents int, within time.Duration) (asked []departure) {
	t.Helper()
	o.Edges, o.Door.Linger = 1, await.Long
	c := agoratest.Start(t, o)
	var all []*agoratest.Client
	for k := range agents {
		all = append(all, register(t, c, fmt.Sprintf("agent-%d", k)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var reading sync.WaitGroup
	var mu sync.Mutex
	untold := 0
	begun := time.Now()
	for _, a := range all {
		reading.Go(func() {
			f, ok := a.Next(within + await.Long)
			at := time.Since(begun)
			mu.Lock()
			defer mu.Unlock()
			if !ok {
				untold++
				return
			}
			if f.Type() != "agent.reconnect" {
				t.Errorf("got %q, want agent.reconnect", f)
			}
			away := time.Duration(f.Uint("after_ms")) * time.Millisecond
			asked = append(asked, departure{at, away, at + away})
		})
	}
	c.Node(0).Drain(ctx)
	late := ctx.Err() != nil
	if late {
		c.Door(0).Close() // as the command does
	}
	reading.Wait()
	switch {
	case late && untold > 0:
		return nil
	case untold > 0:
		t.Fatalf("%d agents were not asked back", untold)
	}
	for _, a := range all {
		a.AwaitClosed(1012)
	}
	slices.SortFunc(asked, func(a, b departure) int { return cmp.Compare(a.back, b.back) })
	return asked
}

// inTurn fails the test when any agent is asked back before its time: they are to come one after the other, so many a second.
func inTurn(t *testing.T, rate int, asked []departure) {
	t.Helper()
	for k, d := range asked {
		if turn := time.Duration(k) * time.Second / time.Duration(rate); d.back < turn-2*time.Millisecond { // it is told in whole ones
			t.Errorf("agent %d was asked back after %v, want it no sooner than after %v", k, d.back, turn)
			return
		}
	}
}

func TestADrainingEdgeAsksItsAgentsBackAtItsRate(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{4, 40} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			asked := drained(t, agoratest.Options{Grace: time.Hour, Node: edge.Config{Moving: edge.Moving{Rate: rate}}}, rate+1, await.Long)
			inTurn(t, rate, asked)
			for _, d := range asked {
				if d.away > 200*time.Millisecond {
					t.Fatalf("one was to stay away for %v: want each told when it is its turn", d.away)
				}
			}
		})
	}
}

// drainedInHaste is drained with too little time for so many agents: for the first ones, and then to tell the rest at once. There is
// more of both when a machine was too slow for that.
func drainedInHaste(t *testing.T, o agoratest.Options, agents int) []departure {
	t.Helper()
	for within := 5 * time.Second; within < await.Long; agents, within = 4*agents, 4*within {
		if asked := drained(t, o, agents, within); asked != nil {
			return asked
		}
	}
	t.Fatal("the rest is not told, however much time there is")
	return nil
}

func TestADrainThatRunsShortOfTimeTellsTheRestAtOnceToComeLater(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	const rate = 4
	asked := drainedInHaste(t, agoratest.Options{Grace: time.Hour, Node: edge.Config{Moving: edge.Moving{Rate: rate}}}, 60)
	inTurn(t, rate, asked)
	if last := asked[len(asked)-1]; last.away < time.Second {
		t.Errorf("the last one was to stay away for %v, want it told long before its turn", last.away)
	}
}

func TestADrainKeepsNobodyAwayForLongerThanHalfTheGrace(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	const grace = 10 * time.Second
	longest := time.Duration(0)
	for _, d := range drainedInHaste(t, agoratest.Options{Grace: grace, Node: edge.Config{Moving: edge.Moving{Rate: 1}}}, 20) {
		longest = max(longest, d.away)
	}
	if longest > grace/2 || longest < grace/4 {
		t.Errorf("agents are kept away for up to %v, want about half the grace of %v and no longer", longest, grace)
	}
}

func TestADrainingEdgeLetsNobodyIn(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 1, Node: edge.Config{Moving: edge.Moving{Rate: 1}}})
	register(t, c, "one")
	register(t, c, "two") // is told a second later
	anonymous := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", nil)
	var draining sync.WaitGroup
	defer draining.Wait()
	draining.Go(func() {
		c.Node(0).Drain(await.Context(t))
	})
	anonymous.Until("it is not ready", func() bool { return c.Node(0).Ready() != nil })
	_, r, err := agoratest.TryConnect(t, agoratest.Direct{}, c.URL(0), "", nil)
	if err == nil || r == nil || r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("a newcomer: %v %+v, want 503 with Retry-After", err, r)
	}
	anonymous.Send(`{"type":"register","id":"three"}`)
	anonymous.Expect(`{"type":"error","code":"UNAVAILABLE"}`)
}
