package policy

import (
	"strings"
	"testing"
)

func TestIDsThatNoAgentCanHaveAreFoundInRules(t *testing.T) {
	r, err := Parse([]byte(`rules:
- name: first
  who: {names: ["*"]}
  agents: ["agora", "AG0RA", "bob ", "bob", " *", "${name}", "e\u0301"]
  send: ["agora", "\u200bx", "\\*"]
- name: second
  who: {names: ["*"]}
  approve: [" a"]
`))
	if err != nil {
		t.Fatal(err)
	}
	said := r.Unusable()
	if said == nil {
		t.Fatal("nothing is found")
	}
	got := strings.Split(said.Error(), "\n")
	want := []string{
		`rule "first": agents: "agora": `, `rule "first": agents: "AG0RA": `, `rule "first": agents: "bob ": `, "rule \"first\": agents: \"e\u0301\": ",
		`rule "first": send: "\u200bx": `, `rule "second": approve: " a": `,
	}
	if len(got) != len(want) {
		t.Fatalf("said: %s", said)
	}
	for i, line := range got {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("said %s, want %s", line, want[i])
		}
	}
	if r, err = Parse([]byte(`rules: [{name: x, who: {names: ["*"]}, agents: ["bob"], send: ["*"]}]`)); err != nil || r.Unusable() != nil {
		t.Errorf("of usable ones is said: %v, %v", err, r.Unusable())
	}
}
