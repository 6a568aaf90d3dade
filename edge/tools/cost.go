package tools

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// budget is how much work one check may be: about as many steps of a third of a microsecond.
const budget = 1 << 20

// value is a JSON value with what is in it, so that it can be told from others that are equal.
type value struct {
	v      any
	names  []string // of kids, in an object
	kids   []*value
	weight int64
}

// grow makes values of what was parsed.
func grow(v any) *value {
	out := &value{v: v, weight: 1}
	switch v := v.(type) {
	case map[string]any:
		out.names = slices.Sorted(maps.Keys(v))
		for _, name := range out.names {
			out.kids = append(out.kids, grow(v[name]))
			out.weight += int64(len(name)) / 64
		}
	case []any:
		for _, item := range v {
			out.kids = append(out.kids, grow(item))
		}
	default:
		out.weight = weigh(v)
	}
	for _, kid := range out.kids {
		out.weight += kid.weight
	}
	return out
}

// weigh returns how much work it is to compare a value.
func weigh(v any) int64 {
	n := int64(1)
	switch v := v.(type) {
	case string:
		n += int64(len(v)) / 64
	case json.Number:
		n += magnitude(v)
	case []any:
		for _, item := range v {
			n += weigh(item)
		}
	case map[string]any:
		for name, item := range v {
			n += weigh(item) + int64(len(name))/64
		}
	}
	return n
}

// magnitude grows with the digits of a number, as it would be written out.
func magnitude(n json.Number) int64 {
	exp := 0
	if e := strings.IndexAny(string(n), "eE"); e >= 0 {
		exp, _ = strconv.Atoi(string(n[e+1:]))
	}
	return 1 + int64(len(n)+max(exp, -exp))/16
}

// affordable reports whether the validator is done with a value soon. It goes through what the validator might, but
// does each pair of a subschema and a value once, which the validator may do again and again.
func (p *plan) affordable(root *jsonschema.Schema, v any, bytes int) bool {
	if !p.unique && p.expanded < endless && p.expanded*4*int64(bytes+16) <= budget {
		return true // the most that it can be
	}
	c := costs{plan: p, known: map[pair]int64{}}
	return c.of(root, grow(v)) <= budget
}

type pair struct {
	s *jsonschema.Schema
	v *value
}

// costs counts the work of a check.
type costs struct {
	plan  *plan
	known map[pair]int64
	spent int64
}

// of returns the work for a value by a subschema, or something beyond budget.
func (c *costs) of(s *jsonschema.Schema, v *value) int64 {
	at := pair{s, v}
	if n, ok := c.known[at]; ok {
		return n
	}
	n := c.alone(s, v)
	if c.spent += n; c.spent > budget {
		return c.spent
	}
	if s.Bool == nil && c.plan.parts[s].takes(v.v) {
		for i := 0; s.PropertyNames != nil && i < len(v.names) && n <= budget; i++ {
			n += 1 + c.of(s.PropertyNames, &value{v: v.names[i], weight: weigh(v.names[i])})
		}
		c.plan.each(s, v, false, func(next *jsonschema.Schema, kid *value, _ string) bool {
			n += 1 + c.of(next, kid)
			return n <= budget
		})
	}
	c.known[at] = n
	return n
}

// takes reports whether a value is of a type that the subschema takes. What is not is looked at no further.
func (t *part) takes(v any) bool {
	if len(t.types) == 0 {
		return true
	}
	is := "null"
	switch v.(type) {
	case map[string]any:
		is = "object"
	case []any:
		is = "array"
	case string:
		is = "string"
	case json.Number:
		return slices.Contains(t.types, "number") || slices.Contains(t.types, "integer")
	case bool:
		is = "boolean"
	}
	return slices.Contains(t.types, is)
}

// alone returns the work for a value by one subschema, without those in it.
func (c *costs) alone(s *jsonschema.Schema, v *value) int64 {
	if s.Bool != nil {
		return 1
	}
	t := c.plan.parts[s]
	n := t.weight
	switch is := v.v.(type) {
	case string:
		n += v.weight
		if s.Pattern != nil {
			n += stepsOf(s.Pattern) * int64(len(is)+16) / 16
		}
	case json.Number:
		n += v.weight * (t.numbers + 2*t.enum.numbers)
	case map[string]any:
		n += v.weight * t.enum.containers
		n += int64(len(v.kids))
		for _, name := range v.names {
			n += t.patterns * int64(len(name)+16) / 16
		}
	case []any:
		n += v.weight * t.enum.containers
		if s.UniqueItems {
			n += v.comparisons()
		}
		if c.plan.unevalued {
			n += int64(len(v.kids))
		}
	}
	return n
}

// comparisons returns the work of comparing all items with each other. Those of scalars have hashes that tell them
// apart.
func (v *value) comparisons() int64 {
	for _, kid := range v.kids {
		switch kid.v.(type) {
		case []any, map[string]any:
			return v.weight * int64(len(v.kids)) / 16
		}
	}
	return v.weight * int64(min(len(v.kids), 20))
}

// each calls f with the subschemas of s that may apply to a value or to what is in it, with the name or index that
// leads there ("" for the value itself), until f returns false. Whether a pattern fits a name is only looked at where
// exact; else any might.
func (p *plan) each(s *jsonschema.Schema, v *value, exact bool, f func(*jsonschema.Schema, *value, string) bool) {
	for _, next := range p.parts[s].same {
		if !f(next, v, "") {
			return
		}
	}
	switch v.v.(type) {
	case map[string]any:
		for i, name := range v.names {
			for _, next := range ofProperty(s, name, exact) {
				if !f(next, v.kids[i], name) {
					return
				}
			}
		}
	case []any:
		for i, kid := range v.kids {
			for _, next := range ofItem(s, i) {
				if !f(next, kid, strconv.Itoa(i)) {
					return
				}
			}
		}
	}
}

// ofProperty returns the subschemas that may apply to a property.
func ofProperty(s *jsonschema.Schema, name string, exact bool) (all []*jsonschema.Schema) {
	known, evaluated := s.Properties[name]
	if evaluated {
		all = append(all, known)
	}
	for re, next := range s.PatternProperties {
		fits := exact && re.MatchString(name)
		if fits || !exact {
			all = append(all, next)
		}
		evaluated = evaluated || fits
	}
	if next, is := s.AdditionalProperties.(*jsonschema.Schema); is && !evaluated {
		all = append(all, next)
	}
	if s.UnevaluatedProperties != nil {
		all = append(all, s.UnevaluatedProperties)
	}
	return all
}

// ofItem returns the subschemas that may apply to an item.
func ofItem(s *jsonschema.Schema, i int) (all []*jsonschema.Schema) {
	if i < len(s.PrefixItems) {
		all = append(all, s.PrefixItems[i])
	} else if s.Items2020 != nil {
		all = append(all, s.Items2020)
	}
	for _, next := range []*jsonschema.Schema{s.Contains, s.UnevaluatedItems} {
		if next != nil {
			all = append(all, next)
		}
	}
	return all
}
