package approval

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/await"
)

// of is a request of an agent of a principal.
func of(tenant, owner string, agent agora.AgentID, id string) Approval {
	q := request(tenant, id)
	q.Agent, q.Owner = agent, owner
	return q
}

// caughtUp waits until an edge has all that was asked.
func caughtUp(t *testing.T, all ...*Approvals) {
	t.Helper()
	for _, a := range all {
		if err := a.CatchUp(await.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEachLevelHasItsShareOfWhatIsPending asks, at two edges in turns, by one agent, by one principal with as many
// agents as it likes, and by one tenant with as many principals, until that is refused: then others are served.
func TestEachLevelHasItsShareOfWhatIsPending(t *testing.T) {
	t.Parallel()
	for level, c := range map[string]struct {
		by   func(n int) Approval
		want int
		next Approval
	}{
		"agent":     {func(n int) Approval { return of("t", "mall", "mall/1", fmt.Sprint(n)) }, 8, of("t", "mall", "mall/2", "x")},
		"principal": {func(n int) Approval { return of("t", "mall", agora.AgentID(fmt.Sprint("mall/", n)), "x") }, 24, of("t", "joe", "joe", "x")},
		"tenant": {func(n int) Approval {
			return of("t", fmt.Sprint("mall", n), agora.AgentID(fmt.Sprint("m", n)), "x")
		}, 28, of("acme", "zed", "zed", "x")},
	} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			_, brokers := cluster(t, 1)
			few := func(c *Config) { c.Each, c.Pending = 8, 32 }
			edges := []*Approvals{edge(t, brokers[0], few), edge(t, brokers[1], few)}
			for n := range c.want {
				ask(t, edges[n%2], c.by(n))
				caughtUp(t, edges...)
			}
			for _, e := range edges {
				_, err := e.Ask(await.Context(t), c.by(c.want))
				wantCode(t, "one more", err, agora.RateLimited)
				if !strings.Contains(fmt.Sprint(err), "this "+level+" has as many pending approvals as it may") {
					t.Errorf("refused with %v, want the level", err)
				}
				ask(t, e, c.next)
			}
			first := c.by(0)
			if _, err := edges[1].Decide(await.Context(t), first.Tenant, first.Agent, first.ID, Verdict{By: "host"}); err != nil {
				t.Fatal(err)
			}
			caughtUp(t, edges...)
			if d, err := edges[0].Decide(await.Context(t), c.next.Tenant, c.next.Agent, c.next.ID, Verdict{By: "host"}); err != nil || d.Owner != c.next.Owner {
				t.Errorf("Decide = %+v, %v, want that of principal %s", d, err, c.next.Owner)
			}
			ask(t, edges[0], c.by(c.want)) // what is decided gives its place back
		})
	}
}

func TestARecordWithoutAPrincipalCountsForItsAgentAndTenant(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, 1)
	a := edge(t, brokers[0], func(c *Config) { c.Each, c.Pending = 8, 8 })
	for n := range 6 { // as an edge stores it that knows of no principals
		q := of("t", "", agora.AgentID(fmt.Sprint("mall/", n)), "x")
		_, _, err := brokers[1].Book().Open(await.Context(t), broker.Entry{Tenant: "t", Name: Box("t", q.Agent, "x"), Body: appendRequest(nil, &q, time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
	}
	caughtUp(t, a)
	ask(t, a, of("t", "mall", "mall/7", "x"))
	_, err := a.Ask(await.Context(t), of("t", "joe", "joe", "x"))
	if wantCode(t, "one more than the tenant's share", err, agora.RateLimited); !strings.Contains(fmt.Sprint(err), "this tenant") {
		t.Errorf("refused with %v, want the tenant", err)
	}
	ask(t, a, of("acme", "zed", "zed", "x"))
}

// A principal that answers its own requests at length leaves room for those that others decide.
func TestLongDecisionsCountToWhoHasAsked(t *testing.T) {
	t.Parallel()
	_, brokers := cluster(t, 1)
	a := edge(t, brokers[0], nil)
	long := Verdict{Approved: true, By: "host", Answer: json.RawMessage(`"` + strings.Repeat("x", MaxAnswer-2) + `"`)}
	var err error
	n := 0
	for ; err == nil && n < 2000; n++ {
		q := of("t", "mall", agora.AgentID(fmt.Sprint("mall/", n/8)), fmt.Sprint(n))
		ask(t, a, q)
		_, err = a.Decide(await.Context(t), "t", q.Agent, q.ID, long)
	}
	if wantCode(t, "a long decision", err, agora.RateLimited); !strings.Contains(fmt.Sprint(err), "this principal has as many bytes of approvals of late as it may") {
		t.Errorf("refused with %v, want the principal", err)
	}
	last := of("t", "mall", agora.AgentID(fmt.Sprint("mall/", (n-1)/8)), fmt.Sprint(n-1))
	if _, err := a.Decide(await.Context(t), "t", last.Agent, last.ID, Verdict{Approved: true, By: "host", Note: "so be it"}); err != nil {
		t.Errorf("a short decision: %v", err)
	}
	for _, q := range []Approval{of("t", "joe", "joe", "x"), of("acme", "zed", "zed", "x")} {
		ask(t, a, q)
		if _, err := a.Decide(await.Context(t), q.Tenant, q.Agent, q.ID, long); err != nil {
			t.Errorf("a long decision for %s: %v", q.Owner, err)
		}
	}
}
