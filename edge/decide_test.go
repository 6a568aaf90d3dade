package edge

import (
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/policy"
)

// ruledActor returns an actor as which a principal acts, by rules; it has no cluster.
func ruledActor(t *testing.T, p Principal, rules string) *Actor {
	t.Helper()
	n := &Node{}
	n.cfg.Policy = new(policy.Policy)
	if rules != "" {
		r, err := policy.Parse([]byte(rules))
		if err != nil {
			t.Fatal(err)
		}
		n.cfg.Policy.Set(r)
	}
	a := &Actor{node: n, authority: authority{credentials: &credentials{policy: n.cfg.Policy}, quota: admission.NewRateLimiter(nil, nil, 0).Quota(p.Tenant, p.Name)}}
	a.principal.Store(&p)
	return a
}

const approvers = `
rules:
  - {name: operators, who: {roles: [operator]}, agents: ["ops"], approve: ["sub-*"]}
  - {name: hosts, who: {roles: [host]}, agents: ["host"]}
  - {name: none of mine, who: {names: [mallory]}, deny: true, approve: ["*"]}
`

func TestWhoMayDecideWhatAnAgentAsksApprovalFor(t *testing.T) {
	op, host := []string{"operator"}, []string{"host"}
	for about, c := range map[string]struct {
		p     Principal
		rules string
		to    agora.AgentID
		may   bool
	}{
		"without authentication, anybody":          {Principal{Any: true, Unverified: true}, "", "host", true},
		"with rules and none, anybody":             {Principal{Any: true, Unverified: true}, approvers, agora.Cluster, true},
		"who is asked":                             {Principal{Agents: []string{"host"}}, "", "host", true},
		"who may be many, and is asked":            {Principal{Any: true}, "", "host", true},
		"who may be many, where all operators are": {Principal{Any: true}, "", agora.Cluster, false},
		"somebody else":                            {Principal{Agents: []string{"other"}}, "", "host", false},
		"who asks":                                 {Principal{Agents: []string{"sub-1"}}, "", "host", false},
		"who asks itself":                          {Principal{Agents: []string{"sub-1", "x"}}, "", "sub-1", false},
		"who asks, though it has the right":        {Principal{Agents: []string{"sub-1"}, Roles: op}, approvers, agora.Cluster, false},
		"who has the right":                        {Principal{Any: true, Roles: op}, approvers, agora.Cluster, true},
		"who has it, whoever is asked":             {Principal{Agents: []string{"ops"}, Roles: op}, approvers, "host", true},
		"who is asked, by rules":                   {Principal{Any: true, Roles: host}, approvers, "host", true},
		"who may be it, but for rules":             {Principal{Any: true}, approvers, "host", false},
		"whom a rule forbids":                      {Principal{Any: true, Name: "mallory", Roles: op}, approvers, agora.Cluster, false},
	} {
		err := ruledActor(t, c.p, c.rules).MayDecide("sub-1", c.to)
		if (err == nil) != c.may || err != nil && agora.AsError(err).Code != agora.Forbidden {
			t.Errorf("%s: %v, want it allowed: %v", about, err, c.may)
		}
	}
}

func TestATokenTakesTheRightToApproveAway(t *testing.T) {
	for claim, may := range map[string]bool{`{}`: true, `{"approve":["sub-*"]}`: true, `{"approve":[]}`: false, `{"approve":["x"]}`: false} {
		scope, err := policy.ParseScope([]byte(claim))
		if err != nil {
			t.Fatal(err)
		}
		p := Principal{Any: true, Roles: []string{"operator"}, Scope: scope}
		if err := ruledActor(t, p, approvers).MayDecide("sub-1", agora.Cluster); (err == nil) != may {
			t.Errorf("%s: %v, want it allowed: %v", claim, err, may)
		}
		if err := ruledActor(t, p, "").MayDecide("sub-1", agora.Cluster); err == nil {
			t.Errorf("%s: a token gives a right", claim)
		}
	}
}
