package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPatternStandsForWhatItSays(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true}, {"*", "anything at all", true}, {"a", "a", true}, {"a", "ab", false}, {"a", "", false},
		{"a*", "a", true}, {"a*", "abc", true}, {"a*", "ba", false}, {"*a", "ba", true}, {"*a", "ab", false},
		{"a*b*c", "a-b-b-c", true}, {"a*b*c", "a-b-b-c-", false}, {"a**c", "abc", true}, {"*a*", "xax", true}, {"*a*", "x", false},
		{`a\*`, "a*", true}, {`a\*`, "ab", false}, {`\${name}`, "${name}", true},
		{"${name}", "joe", true}, {"${name}", "joes", false}, {"${name}/*", "joe/1", true}, {"${name}/*", "jim/1", false}, {"*-${name}", "bot-joe", true},
		{"*oe*", "joe", true}, {"ü*", "übermut", true}, {"*aab", "aaaab", true},
	} {
		p, err := parsePattern(c.pattern)
		if err != nil {
			t.Fatalf("%s: %v", c.pattern, err)
		}
		if got := p.match(c.s, "joe"); got != c.want {
			t.Errorf("%q stands for %q: %t, want %t", c.pattern, c.s, got, c.want)
		}
	}
	for _, bad := range []string{"", "${id}", "a${", strings.Repeat("a", maxPattern+1)} {
		if _, err := parsePattern(bad); err == nil {
			t.Errorf("%.20q is taken", bad)
		}
	}
}

// A name may hold anything: as part of a pattern it stands for itself alone.
func TestANameInAPatternIsNoPattern(t *testing.T) {
	p, err := parsePattern("${name}")
	if err != nil {
		t.Fatal(err)
	}
	if p.match("root", "*") || p.match("root", "r*") || !p.match("*", "*") {
		t.Error("the name * stands for others")
	}
}

const rules = `
rules:
  - name: operators
    who: {roles: [operator], tenants: ["acme", "lab-*"]}
    agents: ["*"]
    send: ["*"]
    join: ["*", "agent.status"]
    publish: ["ops", "mcp.*"]
    create: ["*"]
    directory: true
    relay: true
  - name: everybody
    who: {names: ["*"]}
    agents: ["${name}", "${name}/*"]
    send: ["${name}/*", "help*"]
    join: ["lobby"]
  - name: the mute don't answer
    who: {names: ["mute*"]}
    deny: true
    reply: true
  - name: vault
    who: {names: ["*"]}
    deny: true
    send: ["vault*"]
    join: ["vault"]
`

func parse(t *testing.T, text string) *Rules {
	t.Helper()
	r, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatRulesAllowAndForbid(t *testing.T) {
	r := parse(t, rules)
	joe := Subject{Name: "joe", Tenant: "acme"}
	op := Subject{Name: "jane", Tenant: "lab-7", Roles: []string{"user", "operator"}}
	elsewhere := Subject{Name: "jane", Tenant: "other", Roles: []string{"operator"}}
	for _, c := range []struct {
		about string
		who   Subject
		verb  Verb
		what  string
		want  string
	}{
		{"itself", joe, Be, "joe", ""},
		{"one of its own", joe, Be, "joe/2", ""},
		{"somebody else", joe, Be, "jane", byNoRule},
		{"whom it may address", joe, Send, "helpdesk", ""},
		{"whom it may not", joe, Send, "jane", byNoRule},
		{"whom a rule forbids", joe, Send, "vault-1", `forbidden by rule "vault"`},
		{"whom a rule forbids all", op, Send, "vault-1", `forbidden by rule "vault"`},
		{"an operator, anybody", op, Send, "joe", ""},
		{"an operator of another tenant", elsewhere, Send, "joe", byNoRule},
		{"a role that it lacks", joe, Create, "room", byNoRule},
		{"a space", joe, Join, "lobby", ""},
		{"another space", joe, Join, "attic", byNoRule},
		{"any space", op, Join, "attic", ""},
		{"what is not said", joe, Publish, "lobby", byNoRule},
		{"nothing forbids publishing", op, Publish, "vault", byNoRule},
	} {
		if got := r.Grant(c.who, nil).Refuses(c.verb, c.what); got != c.want {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
	if why := r.Grant(op, nil).RefusesWhole(Directory); why != "" {
		t.Errorf("an operator's directory: %s", why)
	}
	if why := r.Grant(joe, nil).RefusesWhole(Directory); why != byNoRule {
		t.Errorf("joe's directory: %q", why)
	}
	if why := r.Grant(joe, nil).RefusesWhole(Relay); why != byNoRule {
		t.Errorf("joe's relay: %q", why)
	}
	if why := r.Grant(op, nil).RefusesWhole(Relay); why != "" {
		t.Errorf("an operator's relay: %s", why)
	}
	if why := r.Grant(joe, nil).RefusesWhole(Reply); why != "" {
		t.Errorf("who may speak may answer: %s", why)
	}
	if why := r.Grant(Subject{Name: "mute-1"}, nil).RefusesWhole(Reply); why != `forbidden by rule "the mute don't answer"` {
		t.Errorf("who is forbidden to: %q", why)
	}
}

func TestAStarMeansNoSystemSpace(t *testing.T) {
	g := parse(t, rules).Grant(Subject{Name: "jane", Tenant: "acme", Roles: []string{"operator"}}, nil)
	for space, want := range map[string]string{"agent.status": "", "agent.other": byNoRule, "mcp.tools": byNoRule} {
		if got := g.RefusesSpace(Join, space, true); got != want {
			t.Errorf("join %s: %q, want %q", space, got, want)
		}
	}
	if got := g.RefusesSpace(Publish, "mcp.tools", true); got != "" {
		t.Errorf("publish mcp.tools: %q", got)
	}
	if got := g.RefusesSpace(Join, "task.one", false); got != "" {
		t.Errorf("task.one is public: %q", got)
	}
}

func TestNobodyMayApproveUnlessARuleSaysSo(t *testing.T) {
	joe := Subject{Name: "joe"}
	scope, err := ParseScope([]byte(`{"approve":["*"]}`))
	if err != nil {
		t.Fatal(err)
	}
	none := (*Rules)(nil)
	some := parse(t, "rules: [{name: a, who: {names: [joe]}, approve: [\"${name}/*\"]}]\n")
	for about, c := range map[string]struct {
		g    *Grant
		what string
		want string
	}{
		"no rules":             {none.Grant(joe, nil), "joe/1", byNoRule},
		"no rules but a token": {none.Grant(joe, scope), "joe/1", byNoRule},
		"rules about others":   {parse(t, rules).Grant(joe, nil), "joe/1", byNoRule},
		"a rule":               {some.Grant(joe, nil), "joe/1", ""},
		"a rule and a token":   {some.Grant(joe, scope), "joe/1", ""},
		"a rule about another": {some.Grant(joe, nil), "jim/1", byNoRule},
	} {
		if got := c.g.Refuses(Approve, c.what); got != c.want {
			t.Errorf("%s: %q, want %q", about, got, c.want)
		}
	}
}

func TestATokenTakesAwayAndNeverGives(t *testing.T) {
	scope, err := ParseScope([]byte(`{"send":["help*","jane"],"join":[],"directory":false}`))
	if err != nil {
		t.Fatal(err)
	}
	op := Subject{Name: "jo", Tenant: "acme", Roles: []string{"operator"}}
	for about, c := range map[string]struct {
		g    *Grant
		verb Verb
		what string
		want string
	}{
		"with rules, what both allow":          {parse(t, rules).Grant(op, scope), Send, "helpdesk", ""},
		"with rules, what the token has not":   {parse(t, rules).Grant(op, scope), Send, "joe", byToken},
		"with rules, what the rules have not":  {parse(t, rules).Grant(Subject{Name: "x"}, scope), Send, "jane", byNoRule},
		"with rules, what neither speaks of":   {parse(t, rules).Grant(op, scope), Create, "room", ""},
		"with rules, an empty list is nothing": {parse(t, rules).Grant(op, scope), Join, "lobby", byToken},
		"alone, what it has":                   {(*Rules)(nil).Grant(op, scope), Send, "jane", ""},
		"alone, what it has not":               {(*Rules)(nil).Grant(op, scope), Send, "joe", byToken},
		"alone, what it does not speak of":     {(*Rules)(nil).Grant(op, scope), Publish, "room", ""},
	} {
		if got := c.g.Refuses(c.verb, c.what); got != c.want {
			t.Errorf("%s: %q, want %q", about, got, c.want)
		}
	}
	if why := (*Rules)(nil).Grant(op, scope).RefusesWhole(Directory); why != byToken {
		t.Errorf("directory: %q", why)
	}
	if g := (*Rules)(nil).Grant(op, nil); g.Refuses(Send, "x") != "" || g.RefusesWhole(Directory) != "" {
		t.Error("without rules and claims something is forbidden")
	}
	for _, bad := range []string{`[]`, `{"sned":["a"]}`, `{"send":"a"}`, `{"send":[1]}`, `{"send":[""]}`, `"x"`} {
		if _, err := ParseScope([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestAPolicyThatIsWrongIsRefusedWithASentence(t *testing.T) {
	rule := func(rest string) string { return "rules:\n  - {name: a, who: {names: [x]}, " + rest + "}\n" }
	for about, c := range map[string]struct{ text, want string }{
		"empty":            {"", "want 1 to 1000 rules"},
		"no rules":         {"rules: []\n", "want 1 to 1000 rules"},
		"a key misspelled": {rule("sned: [a]"), `line 2: "sned" is no key of a rule, which has agents, approve, create,`},
		"a key twice":      {"rules: []\nrules: []\n", "line 2: rules stands there twice"},
		"not YAML":         {"rules: [", "line 1"},
		"two documents":    {rule("send: [a]") + "---\n" + rule("send: [b]"), "one document"},
		"nobody":           {"rules:\n  - {name: a, send: [b]}\n", `{names: ["*"]} is everybody`},
		"an empty who":     {"rules:\n  - {name: a, who: {}, send: [b]}\n", `{names: ["*"]} is everybody`},
		"no name":          {"rules:\n  - {who: {names: [x]}, send: [b]}\n", "rule 1: want a name"},
		"a name twice":     {rule("send: [a]") + "  - {name: a, who: {names: [x]}, send: [a]}\n", `rule "a": there are two`},
		"nothing said":     {rule("deny: true"), "neither allows nor forbids"},
		"a bad pattern":    {rule(`send: ["${id}"]`), "the only variable is ${name}"},
		"an empty pattern": {rule(`join: [""]`), "join: a pattern is empty"},
		"a number of send": {rule(`send: 1`), "line 2: send: want a list of texts"},
		"a rule of text":   {"rules: [a]\n", "line 1: rules: want a rule, which has"},
		"no mapping":       {"- a\n", "line 1: want a policy, which has rules"},
		"no list of rules": {"rules: x\n", "line 1: rules: want a list of rules"},
		"a number of who":  {"rules:\n  - {name: a, who: 3}\n", "line 2: who: want who, which has names, roles, tenants"},
		"no switch":        {rule("deny: maybe"), "line 2: deny: want true or false"},
		"a list in a list": {rule("send: [[a]]"), "line 2: send: want a text"},
		"several faults":   {rule("sned: [a], reply: 7"), `"sned" is no key of a rule`},
		"by an alias":      {"rules: [{name: &x [y], who: {names: [x]}, send: [a]}, {name: *x}]\n", "line 1: name: want a text"},
		"only by an alias": {"rules: [{name: a, who: {names: [&x b]}, send: *x}]\n", "line 1: this is not what a policy has there"},
		"too many":         {"rules:\n" + strings.Repeat("  - {name: a, who: {names: [x]}, send: [b]}\n", maxRules+1), "not 1001"},
		"too large":        {"# " + strings.Repeat("x", maxFile), "at most 1048576 bytes"},
		"an alias bomb": {"a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"rules: [*d,*d,*d,*d]\n", ""},
		"deeply nested": {"rules: " + strings.Repeat("[", 100000), ""},
	} {
		if r, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want an error about %q", about, r, err, c.want)
		} else {
			wantNoType(t, err)
		}
	}
}

// wantNoType wants an error that speaks of no type of Go's.
func wantNoType(t *testing.T, err error) {
	t.Helper()
	for _, word := range []string{"policy.", "[]string", "unmarshal", "struct", "!!", "Go "} {
		if strings.Contains(err.Error(), word) {
			t.Errorf("%q speaks of %q", err, word)
		}
	}
}

func TestAClaimThatIsWrongIsRefusedWithASentence(t *testing.T) {
	for claim, want := range map[string]string{
		`{"agents":3}`:   "agents: want a list of texts",
		`{"agents":[1]}`: "agents: want a list of texts",
		`{"agnets":[]}`:  `unknown field "agnets"`,
		`{"reply":"x"}`:  "reply: want true or false, not string",
		`["a"]`:          "want an object, not array",
		`"x"`:            "want an object, not string",
		`{`:              "EOF",
	} {
		if _, err := ParseScope([]byte(claim)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %q", claim, err, want)
		} else {
			wantNoType(t, err)
		}
	}
}

func TestAFileThatIsTooLargeIsNotReadToItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 36); err != nil { // which no memory holds
		t.Fatal(err)
	}
	f.Close()
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("read: %v", err)
	}
}

func TestTheExampleIsAPolicy(t *testing.T) {
	r, err := Read("../../deploy/policy.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g := r.Grant(Subject{Name: "alice", Tenant: "default", Roles: []string{"user"}}, nil)
	if why := g.Refuses(Be, "alice"); why != "" {
		t.Errorf("alice may not be alice: %s", why)
	}
	for _, space := range []string{"lobby", "task.alice.build"} { // a join of who may not create leads nowhere while there is none
		for _, v := range []Verb{Join, Create} {
			if why := g.RefusesSpace(v, space, false); why != "" {
				t.Errorf("alice may not do %d to %s: %s", v, space, why)
			}
		}
	}
	if why := g.Refuses(Send, "vault-1"); !strings.Contains(why, `"the vault is closed"`) {
		t.Errorf("alice may speak to the vault: %q", why)
	}
}

func TestDecidingAllocatesNothing(t *testing.T) {
	g := parse(t, rules).Grant(Subject{Name: "jane", Tenant: "acme", Roles: []string{"operator"}}, nil)
	if n := testing.AllocsPerRun(100, func() {
		g.Refuses(Send, "somebody")
		g.RefusesSpace(Join, "agent.status", true)
		g.RefusesWhole(Directory)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecide(b *testing.B) {
	r, err := Parse([]byte(rules))
	if err != nil {
		b.Fatal(err)
	}
	g := r.Grant(Subject{Name: "jane", Tenant: "acme", Roles: []string{"operator"}}, nil)
	for b.Loop() {
		g.Refuses(Send, "somebody")
	}
}
