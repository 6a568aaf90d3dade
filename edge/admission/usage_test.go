package admission

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// whole is a bound without one for agents and principals.
func whole(n int64) Bound { return Bound{Whole: n} }

// TestWhoeverTakesAllItMayLeavesSomethingForTheNext fills a whole by what may be held, one principal after the other
// and one tenant after the other: each finds something.
func TestWhoeverTakesAllItMayLeavesSomethingForTheNext(t *testing.T) {
	for _, r := range Resources() {
		var l Limits
		l = l.WithDefaults()
		l.Connections = 1000 // which the system says
		if b := l.Bound(r); b.Whole == 0 {
			t.Errorf("%v has no whole: one principal with many agents may hold all that there is", r)
		}
	}
	b, tenants, all := whole(1<<14), [3]int64{}, int64(0)
	for tenant := range tenants {
		for principal := range 3 {
			held := Held{0, 0, tenants[tenant], all}
			took := b.Most(held)[OfPrincipal]
			took = min(took, b.Most(Held{0, took, tenants[tenant] + took, all + took})[OfPrincipal])
			if level, no := b.Refuses(held, took); no || took < 1 {
				t.Fatalf("tenant %d, principal %d: may hold %d, refused at %v: %v", tenant, principal, took, level, no)
			}
			tenants[tenant], all = tenants[tenant]+took, all+took
		}
	}
}

func TestWhoIsAloneMayHoldThreeQuarters(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 4, 8, 100, 1 << 14} {
		most := whole(n).Most(Held{})
		if most[OfPrincipal]*4 < n*3 || most[OfTenant]*8 < n*7 || most[OfTenant] > n {
			t.Errorf("of %d a principal may hold %d and a tenant %d, want three quarters and seven eighths", n, most[OfPrincipal], most[OfTenant])
		}
	}
}

// owners are agents of two tenants: one and another agent of a principal, another principal, another tenant.
var (
	one          = Owner{Tenant: "t", Principal: "mall", Agent: "mall/1"}
	anotherAgent = Owner{Tenant: "t", Principal: "mall", Agent: "mall/2"}
	anotherNamed = Owner{Tenant: "t", Principal: "alice", Agent: "alice"}
	otherTenant  = Owner{Tenant: "acme", Principal: "mall", Agent: "mall/1"}
)

// takeAll takes of a resource for owners that give makes until it is refused, and returns how often it got some and why
// no more. What is counted in bytes it takes in large pieces first, and in smaller ones in the end.
func takeAll(u *Usage, r Resource, give func(n int) Owner) (n int, err error) {
	pieces, err := takePieces(u, r, give)
	return len(pieces), err
}

func takePieces(u *Usage, r Resource, give func(n int) Owner) (got []int64, err error) {
	for piece := max(u.limits.Load().Bound(r).Whole/800, 1); ; {
		switch err = u.Take(r, give(len(got)), piece); {
		case err == nil:
			got = append(got, piece)
		case piece == 1:
			return got, err
		default:
			piece /= 2
		}
	}
}

// TestEachLevelIsHeldToItsShareAndNoOtherPays takes every resource by one agent, one principal with as many agents as
// it likes, and one tenant with as many principals.
func TestEachLevelIsHeldToItsShareAndNoOtherPays(t *testing.T) {
	limits := Limits{Calls: 60, Streams: 60, Spaces: 60, Nodes: 600, EdgeCalls: 800, EdgeStreams: 800, EdgeSpaces: 800, EdgeNodes: 800, Connections: 800,
		Queued: 1600 << 10 << 10, Registrations: 600, ClusterRegistrations: 800, ClusterCards: 800, Approvals: 60, ClusterApprovals: 800, Book: 1068, Shard: 800}
	takers := []struct {
		level Level
		owner func(n int) Owner
		next  Owner // who is served then
	}{
		{OfAgent, func(int) Owner { return one }, anotherAgent},
		{OfPrincipal, func(n int) Owner {
			return Owner{Tenant: "t", Principal: "mall", Agent: agora.AgentID(fmt.Sprint("mall/", n))}
		}, anotherNamed},
		{OfTenant, func(n int) Owner {
			return Owner{Tenant: "t", Principal: fmt.Sprint("mall", n), Agent: agora.AgentID(fmt.Sprint("a", n))}
		}, otherTenant},
	}
	for _, r := range Resources() {
		for _, by := range takers {
			if by.level == OfAgent && limits.Bound(r).Agent == 0 {
				continue
			}
			u := NewUsage(NewLiveLimits(limits))
			got, err := takePieces(u, r, by.owner)
			e := agora.AsError(err)
			if e.Code != agora.RateLimited || e.RetryAfter == 0 || !strings.Contains(e.Message, "this "+by.level.String()+" has as many") {
				t.Errorf("%v by one %v: refused after %d with %v", r, by.level, len(got), err)
			}
			if u.Refused(r, by.level) == 0 {
				t.Errorf("%v by one %v: the refusal is not counted", r, by.level)
			}
			if err := u.Take(r, by.next, 1); err != nil {
				t.Errorf("%v by one %v, then by another one: %v", r, by.level, err)
			}
			u.Give(r, by.next, 1)
			for i, n := range got {
				u.Give(r, by.owner(i), n)
			}
			if len(u.pools[r].of) > 0 {
				t.Errorf("%v: of what was given back %+v is left", r, u.pools[r].of)
			}
		}
	}
}

func TestAnAgentCountsAsAPrincipalWhereNobodyHasAskedWhoItIs(t *testing.T) {
	u := NewUsage(NewLiveLimits(Limits{Calls: 1000, EdgeCalls: 800}))
	one, two := Owner{Tenant: "t", Agent: "a"}, Owner{Tenant: "t", Agent: "b"}
	if n, err := takeAll(u, Calls, func(int) Owner { return one }); n != 600 {
		t.Errorf("one agent got %d, then %v; want three quarters of 800", n, err)
	}
	if err := u.Take(Calls, two, 1); err != nil {
		t.Errorf("another agent: %v", err)
	}
	if n, _ := takeAll(NewUsage(NewLiveLimits(Limits{Calls: 1000, EdgeCalls: 800})), Calls, func(int) Owner { return Owner{Tenant: "t"} }); n != 700 {
		t.Errorf("nobody in particular got %d, want the tenant's share: 700", n)
	}
}

func TestWhatIsOfEachHasAWholeForEach(t *testing.T) {
	u := NewUsage(NewLiveLimits(Limits{Calls: 8}))
	of := func(callee agora.AgentID, by Owner) Owner {
		by.Of = agora.ToAgent("t", callee)
		return by
	}
	if n, _ := takeAll(u, CallsFor, func(int) Owner { return of("bob", one) }); n != 8 {
		t.Errorf("one principal has %d calls open for an agent, want 8", n)
	}
	for _, o := range []Owner{of("bob", anotherNamed), of("carl", one)} {
		if err := u.Take(CallsFor, o, 1); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

const (
	securityPage = "../../docs/security.md"
	tableBegin   = "<!-- begin: written by `AGORA_UPDATE_DOCS=1 go test ./edge/admission -run TestTheTableOfResourcesIsDocumented` -->\n"
	tableEnd     = "<!-- end -->\n"
)

// TestTheTableOfResourcesIsDocumented holds the page's table against the one of the code.
func TestTheTableOfResourcesIsDocumented(t *testing.T) {
	b, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(b), tableBegin)
	is, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", securityPage)
	}
	want := documented()
	switch {
	case is == want:
	case os.Getenv("AGORA_UPDATE_DOCS") == "":
		t.Fatalf("the table of %s is not that of the code; write it anew with AGORA_UPDATE_DOCS=1. It should be\n%s", securityPage, want)
	default:
		if err := os.WriteFile(securityPage, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// documented returns the table as the page has it.
func documented() string {
	var s strings.Builder
	s.WriteString("| what is held | of what | settings | an agent | a principal | a tenant | all |\n|---|---|---|---|---|---|---|\n")
	var l Limits
	l = l.WithDefaults()
	for _, r := range Resources() {
		row, b := table[r], l.Bound(r)
		most := b.Most(Held{})
		cell := func(l Level, own int64) string {
			if l == OfAgent && own == 0 {
				return "as its principal"
			}
			return fmt.Sprint(most[l])
		}
		if r == Connections {
			fmt.Fprintf(&s, "| %s | %s | %s | as its principal | three quarters | seven eighths | as many as the process may open files for |\n", row.held, row.counted, row.settings)
			continue
		}
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %s | %s | %d |\n", row.held, row.counted, row.settings, cell(OfAgent, b.Agent), cell(OfPrincipal, b.Principal), cell(OfTenant, 0), b.Whole)
	}
	return s.String()
}
