// Package policy says what each principal may do: rules of a file, and what
// the claims of a token take away from them.
package policy

import (
	"sync/atomic"
)

// Verb is what someone may want to do to something that has a name.
type Verb uint8

// The verbs, and what they are done to.
const (
	Be      Verb = iota // an agent id
	Send                // an agent, by send, a stream or a request
	Join                // a space
	Publish             // a space
	Create              // a space
	Approve             // an agent, whose requests for approval are decided; where there are no rules, nobody may
	verbs
)

// Whole are permissions that are given or not, whoever they concern.
type Whole uint8

// The whole permissions.
const (
	Reply     Whole = iota // to answer agents that may not be addressed, once they have said something
	Directory              // to see who is there: lists, rosters
	Relay                  // to reserve a place at relays of libp2p, and to be connected by them
	wholes
)

// Subject is who wants to do something.
type Subject struct {
	Name, Tenant string
	Roles        []string
}

// permissions are those of one rule or scope. What is nil is not spoken of.
type permissions struct {
	patterns [verbs]patterns
	whole    [wholes]bool
	said     [wholes]bool // whole was spoken of
}

// rule gives permissions to subjects, or takes them from them.
type rule struct {
	name                  string
	deny                  bool
	names, roles, tenants patterns // nil for all
	permissions
}

// Rules are a policy as a file has it. They never change.
type Rules struct{ rules []*rule }

// Len returns how many rules there are.
func (r *Rules) Len() int { return len(r.rules) }

// applies reports whether the rule speaks of a subject.
func (r *rule) applies(s Subject) bool {
	if r.names != nil && !r.names.match(s.Name, s.Name) || r.tenants != nil && !r.tenants.match(s.Tenant, s.Name) {
		return false
	}
	if r.roles == nil {
		return true
	}
	for _, role := range s.Roles {
		if r.roles.match(role, s.Name) {
			return true
		}
	}
	return false
}

// Policy is the rules in force. The zero value has none: then all is allowed but Approve. It may be used by many at a
// time.
type Policy struct{ now atomic.Pointer[Rules] }

// Set puts rules in force; nil for none.
func (p *Policy) Set(r *Rules) { p.now.Store(r) }

// Rules returns the rules in force; nil where there are none.
func (p *Policy) Rules() *Rules { return p.now.Load() }

// Grant is what one subject may do, by the rules and by its own token. A nil one may do everything but Approve.
type Grant struct {
	name        string
	ruled       bool
	deny, allow []*rule
	scope       *Scope
}

// Grant returns what a subject may do. r may be nil for no rules, scope for a
// token that says nothing of it; nil when there is neither.
func (r *Rules) Grant(s Subject, scope *Scope) *Grant {
	if r == nil && scope == nil {
		return nil
	}
	g := &Grant{name: s.Name, ruled: r != nil, scope: scope}
	if r == nil {
		return g
	}
	for _, rule := range r.rules {
		switch {
		case !rule.applies(s):
		case rule.deny:
			g.deny = append(g.deny, rule)
		default:
			g.allow = append(g.allow, rule)
		}
	}
	return g
}

// Ruled reports whether there are rules, so that what they don't allow is forbidden.
func (g *Grant) Ruled() bool { return g != nil && g.ruled }

// Refuses returns why the subject may not do something to what has a name;
// empty when it may. It allocates nothing when it may.
func (g *Grant) Refuses(v Verb, what string) string { return g.refuses(v, what, false) }

// RefusesSpace is [Grant.Refuses] for a space; system reports whether it is one of the cluster's own kinds.
func (g *Grant) RefusesSpace(v Verb, space string, system bool) string {
	return g.refuses(v, space, system)
}

func (g *Grant) refuses(v Verb, what string, system bool) string {
	if v == Approve && !g.Ruled() {
		return byNoRule
	}
	if g == nil {
		return ""
	}
	if s := g.scope; s != nil && s.patterns[v] != nil && !s.patterns[v].matchSpace(what, g.name, system) {
		return byToken
	}
	if !g.ruled {
		return ""
	}
	for _, r := range g.deny {
		if r.patterns[v].match(what, g.name) {
			return r.forbids()
		}
	}
	for _, r := range g.allow {
		if r.patterns[v].matchSpace(what, g.name, system) {
			return ""
		}
	}
	return byNoRule
}

// RefusesWhole returns why the subject lacks a whole permission; empty when it has it.
func (g *Grant) RefusesWhole(w Whole) string {
	if g == nil {
		return ""
	}
	if s := g.scope; s != nil && s.said[w] && !s.whole[w] {
		return byToken
	}
	if !g.ruled {
		return ""
	}
	for _, r := range g.deny {
		if r.whole[w] {
			return r.forbids()
		}
	}
	for _, r := range g.allow {
		if r.whole[w] {
			return ""
		}
	}
	return byNoRule
}

// What is said of a refusal. The name of a rule stands in it, and nothing else of the file.
const (
	byToken  = "the token does not allow it"
	byNoRule = "no rule allows it"
)

func (r *rule) forbids() string { return `forbidden by rule "` + r.name + `"` }
