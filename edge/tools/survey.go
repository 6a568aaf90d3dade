package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Bounds of a schema beside its bytes and depth: the library takes the square of some of them.
const (
	maxSubschemas = 2048
	maxRefs       = 512
	maxPlaces     = 1 << 20 // bytes of the pointers to all subschemas
	maxCount      = 1 << 53 // of what minLength and its like say
)

// survey goes through a schema before the library does. It finds what the library would name no place for, or work long
// at.
type survey struct {
	patterns *patterns
	refs     []reference
	schemas  int
	places   int
}

type reference struct{ place, to string }

func newSurvey() *survey { return &survey{patterns: newPatterns()} }

// What the keywords that hold subschemas hold. All others are looked through as well: a reference may lead there.
var (
	mapsOfSchemas = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
	values        = []string{"const", "default", "enum", "examples"}
	counts        = []string{"maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties"}
)

// schema looks at a subschema; strict says that it is one for sure. The draft that it names is taken out.
func (s *survey) schema(place string, v any, strict bool) *fault {
	switch v := v.(type) {
	case bool:
		return s.count(place)
	case []any:
		for i, item := range v {
			if f := s.schema(pointer(place, strconv.Itoa(i)), item, strict); f != nil {
				return f
			}
		}
	case map[string]any:
		if f := s.count(place); f != nil {
			return f
		}
		if _, ok := v["$schema"].(string); ok {
			delete(v, "$schema")
		}
		if f := s.keywords(place, v, strict); f != nil {
			return f
		}
		return s.inside(place, v, strict)
	}
	return nil
}

// count counts a subschema.
func (s *survey) count(place string) *fault {
	s.schemas++
	s.places += len(place)
	switch {
	case s.schemas > maxSubschemas:
		return &fault{place, fmt.Sprintf("more than %d subschemas", maxSubschemas)}
	case s.places > maxPlaces:
		return &fault{place, "names are too long, for how deep they are nested"}
	}
	return nil
}

// keywords looks at the keywords of a schema that hold no schemas.
func (s *survey) keywords(place string, v map[string]any, strict bool) *fault {
	for _, k := range []string{"$dynamicRef", "$ref"} {
		if to, ok := v[k].(string); ok {
			s.refs = append(s.refs, reference{pointer(place, k), to})
		}
	}
	if len(s.refs) > maxRefs {
		return &fault{place, fmt.Sprintf("more than %d references", maxRefs)}
	}
	if !strict {
		return nil
	}
	if p, ok := v["pattern"].(string); ok && s.patterns.compile(p) == nil {
		return &fault{pointer(place, "pattern"), notPattern}
	}
	if all, ok := v["patternProperties"].(map[string]any); ok {
		for _, p := range slices.Sorted(maps.Keys(all)) {
			if s.patterns.compile(p) == nil {
				return &fault{pointer(pointer(place, "patternProperties"), p), notPattern}
			}
		}
	}
	for _, k := range counts {
		if n, ok := v[k].(json.Number); ok {
			if f, err := n.Float64(); err != nil || f > maxCount {
				return &fault{pointer(place, k), "larger than any value"}
			}
		}
	}
	return nil
}

// inside looks at the schemas in a schema.
func (s *survey) inside(place string, v map[string]any, strict bool) *fault {
	for _, k := range slices.Sorted(maps.Keys(v)) {
		at := pointer(place, k)
		if slices.Contains(values, k) {
			continue
		}
		named, ok := v[k].(map[string]any)
		if !ok || !slices.Contains(mapsOfSchemas, k) {
			if f := s.schema(at, v[k], strict && holdsSchema(k)); f != nil {
				return f
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if f := s.schema(pointer(at, name), named[name], strict); f != nil {
				return f
			}
		}
	}
	return nil
}

// holdsSchema reports whether what stands under a keyword is a schema, or a list of them.
func holdsSchema(keyword string) bool {
	switch keyword {
	case "additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if", "items", "not", "oneOf",
		"prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties":
		return true
	}
	return false
}
