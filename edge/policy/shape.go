package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// shape is what a value in a file must look like: a mapping with keys, a list with items, or plain.
type shape struct {
	want string            // what it is, said to who wrote something else
	keys map[string]*shape // of a mapping
	item *shape            // of a list
	bool bool              // plain, and true or false
}

var (
	aText   = &shape{want: "a text"}
	aSwitch = &shape{want: "true or false", bool: true}
	aList   = &shape{want: `a list of texts, such as ["a", "b"]`, item: aText}
	aWho    = &shape{want: "who", keys: map[string]*shape{"names": aList, "roles": aList, "tenants": aList}}
	aRule   = &shape{want: "a rule", keys: map[string]*shape{
		"name": aText, "deny": aSwitch, "who": aWho, "agents": aList, "send": aList, "reply": aSwitch,
		"join": aList, "publish": aList, "create": aList, "approve": aList, "directory": aSwitch, "relay": aSwitch,
	}}
	aPolicy = &shape{want: "a policy", keys: map[string]*shape{"rules": {want: "a list of rules", item: aRule}}}
)

// faults returns what is not as it should be, each with its line. at is the key that the value stands behind, if any.
// What stands elsewhere in the file (an alias) is not looked into.
func (s *shape) faults(n *yaml.Node, at string) (all []error) {
	if n.Kind == yaml.AliasNode || n.Tag == "!!null" {
		return nil
	}
	kind := yaml.ScalarNode
	switch {
	case s.keys != nil:
		kind = yaml.MappingNode
	case s.item != nil:
		kind = yaml.SequenceNode
	}
	if n.Kind != kind || s.bool && n.Tag != "!!bool" {
		return []error{fmt.Errorf("line %d: %swant %s", n.Line, at, s)}
	}
	if s.item != nil {
		for _, item := range n.Content {
			all = append(all, s.item.faults(item, at)...)
		}
		return all
	}
	return append(all, s.keyFaults(n)...)
}

// String says what it is, with the keys that it has.
func (s *shape) String() string {
	if s.keys == nil {
		return s.want
	}
	return s.want + ", which has " + strings.Join(slices.Sorted(maps.Keys(s.keys)), ", ")
}

// keyFaults returns what is wrong with the keys of a mapping, and with what stands behind them.
func (s *shape) keyFaults(n *yaml.Node) (all []error) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		of, known := s.keys[key.Value]
		switch {
		case key.Tag == "!!merge":
		case !known:
			all = append(all, fmt.Errorf("line %d: %q is no key of %s", key.Line, key.Value, s))
		case seen[key.Value]:
			all = append(all, fmt.Errorf("line %d: %s stands there twice", key.Line, key.Value))
		default:
			seen[key.Value] = true
			all = append(all, of.faults(n.Content[i+1], key.Value+": ")...)
		}
	}
	return all
}

// explain says in the words of a policy why it can't be read. The library's own would be those of this program's types.
func explain(b []byte, err error) error {
	var doc yaml.Node
	if _, typed := errors.AsType[*yaml.TypeError](err); !typed || yaml.Unmarshal(b, &doc) != nil || len(doc.Content) == 0 {
		return errors.New(strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: "))
	}
	if all := aPolicy.faults(doc.Content[0], ""); len(all) > 0 {
		return manyFaults(all)
	}
	return fmt.Errorf("%s: this is not what a policy has there", lineOf.FindString(err.Error())) // behind an alias
}

// manyFaults makes one line of faults; of many it says the first ones.
func manyFaults(all []error) error {
	const most = 10
	var told []string
	for _, err := range all[:min(len(all), most)] {
		told = append(told, err.Error())
	}
	if len(all) > most {
		told = append(told, fmt.Sprintf("and %d more", len(all)-most))
	}
	return errors.New(strings.Join(told, "; "))
}

var lineOf = regexp.MustCompile(`line \d+`)

// explainClaim does the same for the claim of a token.
func explainClaim(err error) error {
	t, typed := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !typed:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	case t.Field == "":
		return fmt.Errorf("want an object, not %s", t.Value)
	case aRule.keys[strings.ToLower(t.Field)] == nil:
		return fmt.Errorf("%s: not %s", strings.ToLower(t.Field), t.Value)
	}
	key := strings.ToLower(t.Field)
	return fmt.Errorf("%s: want %s, not %s", key, aRule.keys[key].want, t.Value)
}
