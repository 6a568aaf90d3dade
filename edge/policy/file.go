package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a file may hold at most.
const (
	maxFile     = 1 << 20
	maxRules    = 1000
	maxPatterns = 1000 // of one list
	maxName     = 100  // of a rule, in characters
)

// file is a policy as it is written.
type file struct {
	Rules []fileRule `yaml:"rules"`
}

type fileRule struct {
	Name string `yaml:"name"`
	Deny bool   `yaml:"deny"`
	Who  *who   `yaml:"who"`

	Agents    []string `yaml:"agents"`
	Send      []string `yaml:"send"`
	Reply     *bool    `yaml:"reply"`
	Join      []string `yaml:"join"`
	Publish   []string `yaml:"publish"`
	Create    []string `yaml:"create"`
	Approve   []string `yaml:"approve"`
	Directory *bool    `yaml:"directory"`
	Relay     *bool    `yaml:"relay"`
}

type who struct {
	Names   []string `yaml:"names"`
	Roles   []string `yaml:"roles"`
	Tenants []string `yaml:"tenants"`
}

// Read reads the policy of a file: see [Parse].
func Read(path string) (*Rules, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	r, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Parse reads a policy: YAML, of at most 1 MiB. It is strict: a key that it
// does not know, a rule that says nothing or whose name stands there twice, is an error. So is a file
// without rules, which would forbid everything.
func Parse(b []byte) (*Rules, error) {
	if len(b) > maxFile {
		return nil, fmt.Errorf("a policy has at most %d bytes", maxFile)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	var f file
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, explain(b, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there may be one document only")
	}
	if len(f.Rules) == 0 || len(f.Rules) > maxRules {
		return nil, fmt.Errorf("want 1 to %d rules below \"rules:\", not %d", maxRules, len(f.Rules))
	}
	return compile(f.Rules)
}

// compile makes rules of those that a file has.
func compile(written []fileRule) (*Rules, error) {
	all := &Rules{}
	known := map[string]bool{}
	for k, w := range written {
		at := fmt.Sprintf("rule %d", k+1)
		if w.Name != "" {
			at = fmt.Sprintf("rule %q", w.Name)
		}
		r, err := w.compile()
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", at, err)
		case known[r.name]:
			return nil, fmt.Errorf("%s: there are two of this name", at)
		}
		known[r.name] = true
		all.rules = append(all.rules, r)
	}
	return all, nil
}

func (w *fileRule) compile() (*rule, error) {
	switch {
	case w.Name == "" || len([]rune(w.Name)) > maxName || strings.ContainsFunc(w.Name, func(r rune) bool { return r < ' ' || r == '"' }):
		return nil, fmt.Errorf("want a name of at most %d characters, without quotes", maxName)
	case w.Who == nil || w.Who.Names == nil && w.Who.Roles == nil && w.Who.Tenants == nil:
		return nil, errors.New(`want who: it is for, by names, roles or tenants; {names: ["*"]} is everybody`)
	}
	r := &rule{name: w.Name, deny: w.Deny}
	for _, l := range []struct {
		to    *patterns
		texts []string
		name  string
	}{
		{&r.names, w.Who.Names, "who.names"}, {&r.roles, w.Who.Roles, "who.roles"}, {&r.tenants, w.Who.Tenants, "who.tenants"},
		{&r.patterns[Be], w.Agents, "agents"}, {&r.patterns[Send], w.Send, "send"},
		{&r.patterns[Join], w.Join, "join"}, {&r.patterns[Publish], w.Publish, "publish"}, {&r.patterns[Create], w.Create, "create"},
		{&r.patterns[Approve], w.Approve, "approve"},
	} {
		if err := fill(l.to, l.texts, l.name); err != nil {
			return nil, err
		}
	}
	// Who may speak at all may answer, unless a rule says otherwise; a rule that forbids forbids what it names.
	r.set(Reply, w.Reply, !w.Deny)
	r.set(Directory, w.Directory, false)
	r.set(Relay, w.Relay, false)
	return r, r.idle(w)
}

// fill compiles a list; one that is not there stays nil.
func fill(to *patterns, texts []string, name string) (err error) {
	if texts == nil {
		return nil
	}
	if len(texts) > maxPatterns {
		return fmt.Errorf("%s: more than %d patterns", name, maxPatterns)
	}
	if *to, err = parsePatterns(texts); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (p *permissions) set(w Whole, value *bool, otherwise bool) {
	p.whole[w] = otherwise
	if value != nil {
		p.whole[w], p.said[w] = *value, true
	}
}

// idle returns an error for a rule that changes nothing.
func (r *rule) idle(w *fileRule) error {
	for _, p := range r.patterns {
		if len(p) > 0 {
			return nil
		}
	}
	if w.Reply != nil || w.Directory != nil && *w.Directory || w.Relay != nil && *w.Relay {
		return nil
	}
	return errors.New("it neither allows nor forbids anything")
}

// Scope is what a token says of itself that it may do: less than the rules
// allow, never more. What it does not speak of is as the rules have it.
type Scope struct{ permissions }

// ParseScope reads the claim of a token: an object whose lists agents, send,
// join, publish, create and approve, and whose booleans reply, directory and relay, mean what they mean in a rule. An
// empty list allows nothing. What it does not understand is an error: the token must not pass then.
func ParseScope(claim []byte) (*Scope, error) {
	var c struct {
		Agents, Send, Join, Publish, Create, Approve []string
		Reply, Directory, Relay                      *bool
	}
	d := json.NewDecoder(bytes.NewReader(claim))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("the permissions of the token can't be read: %w", explainClaim(err))
	}
	s := &Scope{}
	for v, texts := range map[Verb][]string{Be: c.Agents, Send: c.Send, Join: c.Join, Publish: c.Publish, Create: c.Create, Approve: c.Approve} {
		if err := fill(&s.patterns[v], texts, "the permissions of the token"); err != nil {
			return nil, err
		}
	}
	s.set(Reply, c.Reply, true)
	s.set(Directory, c.Directory, true)
	s.set(Relay, c.Relay, true)
	return s, nil
}
