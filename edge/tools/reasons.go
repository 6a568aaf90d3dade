package tools

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/agora-relay/agora"
)

// Check returns nil where arguments, which are raw JSON, fit the schema; nil arguments are an empty object. Else its
// error is a *[Refusal] with INVALID_REQUEST that names the place in the arguments and in the schema, but no value: the
// first of those that lie deepest. What is no JSON, deeper than 256, has a name twice in an object or a number beyond
// what a float holds does not fit, nor does what would take too long to check. It does not block.
func (s *Schema) Check(arguments []byte) error {
	if r := s.check(arguments); r != nil {
		return r
	}
	return nil
}

func (s *Schema) check(arguments []byte) (r *Refusal) {
	v, r := parseArguments(arguments)
	if r != nil {
		return r
	}
	if !s.plan.affordable(s.root, v, len(arguments)) {
		return refuse(agora.InvalidRequest, "", "arguments take too long to check against the tool's schema")
	}
	defer func() {
		if recover() != nil { // the library's, which an input no one thought of has found
			r = refuse(agora.InvalidRequest, "", "arguments can't be checked against the tool's schema")
		}
	}()
	err := s.root.Validate(v)
	if e, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		l := firstLeaf(e)
		return refuse(agora.InvalidRequest, l.at, "%s (schema %s)", l.why, clip(cmp.Or(l.schema, "/")))
	}
	return nil
}

func parseArguments(arguments []byte) (any, *Refusal) {
	if arguments == nil {
		return map[string]any{}, nil
	}
	v, r := parse(arguments, maxDepth)
	if r != nil && r.Path == "" {
		r = refuse(agora.InvalidRequest, "", "arguments are %s", r.Err.Message)
	}
	return v, r
}

// leaf is one thing that does not fit.
type leaf struct {
	depth      int
	at, schema string // JSON pointers
	why        string
}

// firstLeaf returns the first of those causes that lie deepest in the value.
func firstLeaf(e *jsonschema.ValidationError) leaf {
	var best *leaf
	var visit func(e *jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		_, name := e.ErrorKind.(*kind.PropertyNames)
		if len(e.Causes) > 0 && !name {
			for _, cause := range e.Causes {
				visit(cause)
			}
			return
		}
		if l := newLeaf(e, name); best == nil || l.compare(best) < 0 {
			best = l
		}
	}
	visit(e)
	return *best
}

// newLeaf describes a cause. Of names that are not as they may be the library does not say where they stand.
func newLeaf(e *jsonschema.ValidationError, name bool) *leaf {
	l := &leaf{schema: placeOf(e.SchemaURL), why: reason(e.ErrorKind)}
	for _, k := range e.ErrorKind.KeywordPath() {
		if !name || k != "propertyNames" {
			l.schema = pointer(l.schema, k)
		}
	}
	if name {
		return l
	}
	l.depth = len(e.InstanceLocation)
	for _, token := range e.InstanceLocation {
		l.at = pointer(l.at, token)
	}
	return l
}

func (l *leaf) compare(with *leaf) int {
	return cmp.Or(cmp.Compare(with.depth, l.depth), cmp.Compare(l.at, with.at), cmp.Compare(l.schema, with.schema), cmp.Compare(l.why, with.why))
}

// reason says what does not fit. It has names and what the schema wants, never a value.
func reason(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "got " + k.Got + ", want " + strings.Join(k.Want, " or ")
	case *kind.Required:
		return "lacks " + quoted(k.Missing)
	case *kind.DependentRequired:
		return "lacks " + quoted(k.Missing) + ", which goes with " + quoted([]string{k.Prop})
	case *kind.Dependency:
		return "lacks " + quoted(k.Missing) + ", which goes with " + quoted([]string{k.Prop})
	case *kind.AdditionalProperties:
		return "has " + quoted(k.Properties) + ", which it may not have"
	case *kind.PropertyNames:
		return "may not have the name " + quoted([]string{k.Property})
	case *kind.Enum:
		return fmt.Sprintf("is none of the %d values that it may be", len(k.Want))
	case *kind.Const:
		return "is not the value that it must be"
	case *kind.Format:
		return formatReason(k.Want)
	case *kind.FalseSchema:
		return "may not be there"
	case *kind.Not:
		return "is what it may not be"
	case *kind.OneOf:
		if len(k.Subschemas) == 2 {
			return fmt.Sprintf("fits %d and %d of the schemas of which it is to fit one", k.Subschemas[0], k.Subschemas[1])
		}
		return "fits none of the schemas that it may fit"
	}
	return bounds(k)
}

func formatReason(format string) string {
	if format == "regex" {
		return notPattern
	}
	return "is no " + format
}

// bounds says which bound a value does not keep.
func bounds(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinProperties:
		return fmt.Sprintf("has %d properties, want at least %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d properties, want at most %d", k.Got, k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("has %d items, want at least %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %d items, want at most %d", k.Got, k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains, *kind.MinContains:
		return "has too few items that fit the schema in contains"
	case *kind.MaxContains:
		return "has too many items that fit the schema in contains"
	case *kind.MinLength:
		return fmt.Sprintf("has %d characters, want at least %d", k.Got, k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters, want at most %d", k.Got, k.Want)
	case *kind.Pattern:
		return "does not match the pattern"
	case *kind.Minimum:
		return "is less than " + spelled(k.Want)
	case *kind.Maximum:
		return "is more than " + spelled(k.Want)
	case *kind.ExclusiveMinimum:
		return "is not more than " + spelled(k.Want)
	case *kind.ExclusiveMaximum:
		return "is not less than " + spelled(k.Want)
	case *kind.MultipleOf:
		return "is no multiple of " + spelled(k.Want)
	}
	return "does not fit"
}

// spelled writes a number of a schema, shortly.
func spelled(r *big.Rat) string {
	f, _ := r.Float64()
	return fmt.Sprintf("%g", f)
}

// quoted lists names, those of which there are many not to the end.
func quoted(names []string) string {
	names = slices.Sorted(slices.Values(names))
	var all []string
	for i, name := range names {
		if i == 3 {
			all = append(all, fmt.Sprintf("%d more", len(names)-i))
			break
		}
		all = append(all, "'"+clip(name)+"'")
	}
	return strings.Join(all, ", ")
}
