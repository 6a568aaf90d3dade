package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxChain is how many schemas may apply to one value through each other.
const maxChain = 64

// plan is what is known of a compiled schema beside it.
type plan struct {
	parts     map[*jsonschema.Schema]*part
	expanded  int64 // weight of all parts, each as often as it is referred to; endless where one refers to itself
	unique    bool  // items are compared with each other somewhere
	unevalued bool  // unevaluatedItems or unevaluatedProperties stand somewhere
	paths     bool  // a format is path somewhere
}

const endless = math.MaxInt32

// part is what is known of a subschema.
type part struct {
	same     []*jsonschema.Schema // that apply to the same value
	types    []string
	path     bool // its format is path
	weight   int64
	enum     valuesIn
	patterns int64 // steps of the programs for names
	numbers  int64 // keywords about numbers
}

// newPlan plans all that can be reached from root, and finds what would not end.
func newPlan(root *jsonschema.Schema, doc any) (*plan, *fault) {
	p := &plan{parts: map[*jsonschema.Schema]*part{}}
	queue := []*jsonschema.Schema{root}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if p.parts[s] != nil {
			continue
		}
		p.parts[s] = p.part(s, doc)
		for _, next := range slices.Concat(p.parts[s].same, below(s)) {
			if !strings.HasPrefix(next.Location, home+"#") {
				return nil, &fault{placeOf(s.Location), "refers to something outside of the schema"}
			}
			if next.DraftVersion != 2020 {
				return nil, &fault{placeOf(next.Location), "not JSON Schema 2020-12"}
			}
			queue = append(queue, next)
		}
	}
	p.dynamic()
	if f := p.chains(); f != nil {
		return nil, f
	}
	p.expanded = p.expand(root, map[*jsonschema.Schema]int64{})
	return p, nil
}

// part plans one subschema.
func (p *plan) part(s *jsonschema.Schema, doc any) *part {
	if s.Bool != nil {
		return &part{weight: 1}
	}
	t := &part{same: same(s)}
	if s.Types != nil {
		t.types = s.Types.ToStrings()
	}
	if raw, ok := lookup(doc, placeOf(s.Location)).(map[string]any); ok {
		t.path = raw["format"] == "path"
	}
	if s.Enum != nil {
		t.enum.add(s.Enum.Values...)
	}
	if s.Const != nil {
		t.enum.add(*s.Const)
	}
	for re := range s.PatternProperties {
		t.patterns += stepsOf(re)
	}
	for _, has := range []bool{s.Minimum != nil, s.Maximum != nil, s.ExclusiveMinimum != nil, s.ExclusiveMaximum != nil, s.MultipleOf != nil, slices.Contains(t.types, "integer")} {
		if has {
			t.numbers++
		}
	}
	required := len(s.Required)
	for _, names := range s.DependentRequired {
		required += 1 + len(names)
	}
	t.weight = 1 + int64(required)/4 + int64(len(s.DependentSchemas)+len(s.Dependencies))/4 + t.enum.weight
	if s.DynamicRef != nil {
		t.weight += maxChain
	}
	p.unique = p.unique || s.UniqueItems
	p.unevalued = p.unevalued || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
	p.paths = p.paths || t.path
	return t
}

// same returns the subschemas that apply to the value that s applies to, but for those that dynamic adds.
func same(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	for _, one := range []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else} {
		if one != nil {
			all = append(all, one)
		}
	}
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		all = append(all, s.DependentSchemas[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		if one, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
			all = append(all, one)
		}
	}
	return all
}

// below returns the subschemas that apply to what is inside the value that s applies to.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Clone(s.PrefixItems)
	for _, one := range []*jsonschema.Schema{s.Items2020, s.Contains, s.UnevaluatedItems, s.UnevaluatedProperties, s.PropertyNames} {
		if one != nil {
			all = append(all, one)
		}
	}
	if one, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		all = append(all, one)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		all = append(all, s.Properties[name])
	}
	for _, one := range s.PatternProperties {
		all = append(all, one)
	}
	return all
}

// dynamic adds what references may lead to that depend on the way to them: every place that has the anchor's name.
func (p *plan) dynamic() {
	for s, t := range p.parts {
		if s.DynamicRef == nil && s.RecursiveRef == nil {
			continue
		}
		for other := range p.parts {
			named := s.DynamicRef != nil && s.DynamicRef.Anchor != "" && other.DynamicAnchor == s.DynamicRef.Anchor
			recursive := s.RecursiveRef != nil && other.RecursiveAnchor
			if (named || recursive) && !slices.Contains(t.same, other) {
				t.same = append(t.same, other)
			}
		}
	}
}

// chains finds schemas that apply to one value through themselves, or through too many others.
func (p *plan) chains() *fault {
	const under = -1
	length := map[*jsonschema.Schema]int{}
	var visit func(s *jsonschema.Schema) *fault
	visit = func(s *jsonschema.Schema) *fault {
		switch {
		case length[s] == under:
			return &fault{placeOf(s.Location), "refers to itself without end"}
		case length[s] > 0:
			return nil
		}
		length[s] = under
		longest := 0
		for _, next := range p.parts[s].same {
			if f := visit(next); f != nil {
				return f
			}
			longest = max(longest, length[next])
		}
		if length[s] = longest + 1; length[s] > maxChain {
			return &fault{placeOf(s.Location), fmt.Sprintf("more than %d schemas apply to one value through each other", maxChain)}
		}
		return nil
	}
	for _, s := range p.sorted() {
		if f := visit(s); f != nil {
			return f
		}
	}
	return nil
}

// sorted returns all parts by their places.
func (p *plan) sorted() []*jsonschema.Schema {
	return slices.SortedFunc(maps.Keys(p.parts), func(a, b *jsonschema.Schema) int { return strings.Compare(a.Location, b.Location) })
}

// expand returns the weight of a part and all below it. It notes those it knows, and for the others that they are under
// way.
func (p *plan) expand(s *jsonschema.Schema, known map[*jsonschema.Schema]int64) int64 {
	if n, ok := known[s]; ok {
		return n
	}
	known[s] = endless
	t := p.parts[s]
	n := t.weight + t.patterns + t.numbers
	if s.Pattern != nil {
		n += stepsOf(s.Pattern)
	}
	for _, next := range slices.Concat(t.same, below(s)) {
		n = min(n+p.expand(next, known), endless)
	}
	known[s] = n
	return n
}

func stepsOf(re jsonschema.Regexp) int64 {
	if p, ok := re.(*pattern); ok {
		return int64(p.steps)
	}
	return maxProgram
}

// lookup returns what a JSON pointer leads to; nil for nothing.
func lookup(doc any, ptr string) any {
	for _, name := range strings.Split(ptr, "/")[1:] {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		switch v := doc.(type) {
		case map[string]any:
			doc = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			doc = v[i]
		default:
			return nil
		}
	}
	return doc
}

// valuesIn is what an enum costs to compare with.
type valuesIn struct {
	weight, numbers, containers int64
}

func (e *valuesIn) add(all ...any) {
	for _, v := range all {
		e.weight += weigh(v)
		switch v.(type) {
		case json.Number:
			e.numbers++
		case []any, map[string]any:
			e.containers++
		}
	}
}
