package agenttools

import (
	"encoding/json"
	"slices"
)

// shape checks the value of a keyword.
type shape func(v any) bool

// shapeOf returns what the value of a keyword of JSON Schema 2020-12 must be; nil where it may be anything.
func shapeOf(keyword string) shape {
	switch keyword {
	case "type":
		return isType
	case "required":
		return isStrings
	case "enum", "examples":
		return isList
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return isSchemas
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return isSchemaList
	case "additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
		return isSchema
	case "$ref", "$id", "$schema", "$anchor", "$comment", "title", "description", "format", "pattern":
		return isString
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return isNumber
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		return isBool
	}
	return nil
}

// wellFormed reports whether JSON has the form of a schema. One schema that has not makes the makers of some models
// refuse a whole conversation in which it is among the tools.
func wellFormed(schema json.RawMessage) bool {
	var v any
	return json.Unmarshal(schema, &v) == nil && isSchema(v)
}

func isSchema(v any) bool {
	keys, ok := v.(map[string]any)
	for key, value := range keys {
		if fits := shapeOf(key); fits != nil && !fits(value) {
			return false
		}
	}
	return ok || isBool(v)
}

func isSchemas(v any) bool {
	all, ok := v.(map[string]any)
	for _, s := range all {
		ok = ok && isSchema(s)
	}
	return ok
}

func isSchemaList(v any) bool {
	all, ok := v.([]any)
	return ok && len(all) > 0 && !slices.ContainsFunc(all, func(s any) bool { return !isSchema(s) })
}

func isType(v any) bool {
	if all, ok := v.([]any); ok {
		return len(all) > 0 && distinct(all) && !slices.ContainsFunc(all, func(s any) bool { return !isTypeName(s) })
	}
	return isTypeName(v)
}

func isTypeName(v any) bool {
	s, ok := v.(string)
	return ok && slices.Contains([]string{"object", "array", "string", "number", "integer", "boolean", "null"}, s)
}

func isStrings(v any) bool {
	all, ok := v.([]any)
	return ok && !slices.ContainsFunc(all, func(s any) bool { return !isString(s) }) && distinct(all)
}

// distinct reports whether a list of strings has each once. It is called with strings, or with what another check
// refuses.
func distinct(all []any) bool {
	seen := make(map[string]bool, len(all))
	for _, v := range all {
		s, ok := v.(string)
		if !ok || seen[s] {
			return false
		}
		seen[s] = true
	}
	return true
}

func isList(v any) bool   { _, ok := v.([]any); return ok }
func isString(v any) bool { _, ok := v.(string); return ok }
func isNumber(v any) bool { _, ok := v.(float64); return ok }
func isBool(v any) bool   { _, ok := v.(bool); return ok }
