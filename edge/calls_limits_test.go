package edge_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

func TestAnAgentHasAThousandCallsOpenAndNoMore(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 1})
	if l := c.Node(0).Limits(); l.Calls != 1024 || l.EdgeCalls != 16384 {
		t.Errorf("limits are %d of an agent and %d in all, want 1024 and 16384", l.Calls, l.EdgeCalls)
	}
	registered(t, c, 0, "bob")
	who := caller(t, c, 0)
	const callers = 16
	open := make([][]*call.Answer, callers)
	var all sync.WaitGroup
	for k := range open {
		all.Go(func() {
			for range 1024 / callers {
				a, err := who.Call(await.Context(t), "anna", question("bob", "r"))
				if err != nil {
					t.Errorf("a call within the limit: %v", err)
					return
				}
				open[k] = append(open[k], a)
			}
		})
	}
	all.Wait()
	if _, err := who.Call(await.Context(t), "anna", question("bob", "r")); code(err) != agora.RateLimited {
		t.Errorf("one beyond the limit: %v, want RATE_LIMITED", err)
	}
	if a, err := who.Call(await.Context(t), "zoe", question("bob", "r")); err != nil {
		t.Errorf("a call of zoe's, who has none open: %v", err)
	} else {
		a.Close()
	}
	open[0][0].Close()
	a, err := who.Call(await.Context(t), "anna", question("bob", "r"))
	if err != nil {
		t.Errorf("once another is closed: %v", err)
	} else {
		a.Close()
	}
	for _, of := range open {
		for _, a := range of {
			a.Close()
		}
	}
}

// What has come of answers that nobody takes is held by the edge, like all else.
func TestAnswersThatAreNotTakenCountAgainstWhatTheEdgeHolds(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Edges: 2, Tune: func(k int, cfg *edge.Config) {
		if k == 0 {
			cfg.Limits.Queued = 256 << 10
		}
	}})
	bob, _ := registered(t, c, 1, "bob")
	var open []*call.Answer
	refused := func() bool {
		q := question("bob", "r")
		a, err := caller(t, c, 0).Call(await.Context(t), "anna", q)
		if err != nil {
			if code(err) != agora.Unavailable {
				t.Fatalf("Call: %v, want UNAVAILABLE", err)
			}
			return true
		}
		open = append(open, a)
		bob.Expect(`{"type":"message","from":"anna"}`)
		bob.Send(fmt.Sprintf(`{"type":"reply","to":"anna","payload":{"request_id":"r","text":%q}}`, strings.Repeat("x", 32<<10)))
		return false
	}
	await.True(t, "a call is refused as the edge holds too much", refused)
	for _, a := range open {
		a.Close()
	}
	open = nil
	await.True(t, "one is let in again", func() bool { return !refused() })
	answers(t, open[0], fmt.Sprintf(`{"request_id":"r","text":%q}`, strings.Repeat("x", 32<<10)))
}
