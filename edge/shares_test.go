package edge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
)

// actingAs returns an actor at edge k of who a token names.
func actingAs(t *testing.T, c *agoratest.Cluster, k int, token string) *edge.Actor {
	t.Helper()
	a, err := c.Node(k).Authenticate(t.Context(), edge.Credentials{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// kept is something that the whole cluster holds for agents: how one more of it is asked for, and given back.
type kept struct {
	resource admission.Resource
	held     string // as the refusal names it
	take     func(a *edge.Actor, id agora.AgentID) error
	give     func(a *edge.Actor, id agora.AgentID) error
}

// keptByTheCluster are the resources whose whole is the cluster's, but for those that package approval tests.
func keptByTheCluster(t *testing.T) []kept {
	card := agora.Agent{Name: strings.Repeat("x", 100)}
	large := agora.Agent{Metadata: json.RawMessage(`"` + strings.Repeat("x", 10<<10) + `"`)}
	register := func(card agora.Agent) func(a *edge.Actor, id agora.AgentID) error {
		return func(a *edge.Actor, id agora.AgentID) error {
			own := card // agents register at the same time
			own.ID = id
			_, err := a.Register(t.Context(), own, time.Hour)
			return err
		}
	}
	give := func(a *edge.Actor, id agora.AgentID) error { return a.Unregister(t.Context(), id) }
	return []kept{
		{admission.Registrations, "registrations without a connection", register(card), give},
		{admission.CardBytes, "bytes of agents' cards", register(large), give},
	}
}

// TestWhateverAPrincipalOrATenantRegistersOthersAreServed has one principal with as many agents as it likes, and one
// tenant with as many principals, register at two edges until that is refused: then others register at both, and so may
// who gives something back.
func TestWhateverAPrincipalOrATenantRegistersOthersAreServed(t *testing.T) {
	t.Parallel()
	for _, r := range keptByTheCluster(t) {
		for level, by := range map[string]struct {
			token func(n int) string
			next  string // who is served then
		}{
			"principal": {func(int) string { return "t mall" }, "t joe"},
			"tenant":    {func(n int) string { return fmt.Sprint("t mall", n) }, "acme zed"},
		} {
			t.Run(r.resource.String()+" of a "+level, func(t *testing.T) {
				t.Parallel()
				limits := admission.Limits{ClusterRegistrations: 24, ClusterCards: 1 << 20}
				if r.resource == admission.CardBytes {
					limits = admission.Limits{ClusterCards: 24 * 11 << 10}
				}
				c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{Auth: byWord{}, Limits: limits}})
				n, err := 0, error(nil)
				for ; err == nil && n < 100; n++ {
					err = r.take(actingAs(t, c, n%2, by.token(n)), agora.AgentID(fmt.Sprint("mall/", n)))
				}
				e := agora.AsError(err)
				if e.Code != agora.RateLimited || e.RetryAfter == 0 || !strings.Contains(e.Message, " has as many "+r.held) || n < 16 {
					t.Errorf("refused after %d with %v", n, err)
				}
				for k := range 2 {
					if err := r.take(actingAs(t, c, k, by.next), agora.AgentID(fmt.Sprint("next/", k))); err != nil {
						t.Errorf("%s at edge %d: %v", by.next, k, err)
					}
				}
				if err := r.give(actingAs(t, c, 1, by.token(0)), "mall/0"); err != nil {
					t.Fatal(err)
				}
				for k := range 2 { // their room is left to them
					if err := r.give(actingAs(t, c, k, by.next), agora.AgentID(fmt.Sprint("next/", k))); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.take(actingAs(t, c, 0, by.token(0)), "mall/again"); err != nil {
					t.Errorf("once one is given back: %v", err)
				}
			})
		}
	}
}

func TestCardsOfConnectedAgentsCountToTheirPrincipal(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{Auth: byWord{}, Limits: admission.Limits{ClusterCards: 40 << 10}}})
	card := `"metadata":{"x":"` + strings.Repeat("x", 10<<10) + `"}`
	enter := func(k int, token, id string) *agoratest.Client {
		a := agoratest.Connect(t, agoratest.Direct{}, c.URL(k), "token="+strings.ReplaceAll(token, " ", "+"), nil)
		a.Send(`{"type":"agent.register","agent":{"id":"` + id + `",` + card + `}}`)
		return a
	}
	first := enter(0, "t mall", "mall/0")
	first.Expect(`{"type":"agent.registered"}`)
	enter(1, "t mall", "mall/1").Expect(`{"type":"agent.registered"}`)
	enter(0, "t mall", "mall/2").Expect(`{"type":"error","code":"RATE_LIMITED","message":"this principal has as many bytes of agents' cards as it may"}`)
	first.Send(`{"type":"agent.register","agent":{"id":"mall/0","metadata":{"x":"` + strings.Repeat("y", 20<<10) + `"}}}`)
	first.Expect(`{"type":"error","code":"RATE_LIMITED"}`)
	enter(1, "acme zed", "zed").Expect(`{"type":"agent.registered"}`)
	as(t, c, 0, "t mall", "mall/bare") // who says nothing is let in
}
