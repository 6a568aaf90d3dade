package agenttools

import (
	"slices"

	"github.com/agora-relay/agora/internal/rawjson"
)

// anyJSON is the anyOf of a schema that takes anything, as one that says so. Hosts refuse a whole list of tools in
// which the schema of one property is `true`, and some what says nothing; makers of models refuse lists of types, and
// lists without items.
var anyJSON = []byte(`[{"type":"object"},` +
	`{"type":"array","items":{"anyOf":[{"type":"object"},{"type":"string"},{"type":"number"},{"type":"boolean"}]}},` +
	`{"type":"string"},{"type":"number"},{"type":"boolean"}]`)

// saysNothing are the keywords that hold for every value.
var saysNothing = []string{
	"$schema", "$id", "$anchor", "$comment", "title", "description", "examples", "default", "deprecated", "readOnly", "writeOnly",
}

// mayBeTrue are the keywords whose value is `true` or `false` everywhere.
var mayBeTrue = []string{"additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems"}

// holds says where schemas stand in the value of a keyword.
type holds uint8

const (
	none   holds = iota
	one          // the value is a schema
	list         // it is a list of them, or one
	byName       // it is an object whose members are schemas
)

func schemasIn(keyword string) holds {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return byName
	case "allOf", "anyOf", "oneOf", "prefixItems", "items":
		return list
	case "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems":
		return one
	}
	return none
}

// spelledOut returns a well-formed schema in which each schema says of which types a value may be, or something else of
// it: none is `true` or `{}`, and none of a property is `false`. All else keeps its bytes.
func spelledOut(schema []byte) []byte {
	switch {
	case string(schema) == "true":
		return rawjson.With([]byte("{}"), "anyOf", anyJSON)
	case silent(schema):
		return rawjson.With(schema, "anyOf", anyJSON)
	case schema[0] != '{':
		return schema
	}
	return rewritten(schema, func(keyword string, value []byte) []byte {
		switch at := schemasIn(keyword); {
		case at == byName && value[0] == '{':
			return rewritten(value, func(_ string, s []byte) []byte {
				if string(s) == "false" {
					return []byte(`{"not":{}}`)
				}
				return spelledOut(s)
			})
		case at == list && value[0] == '[':
			out := []byte{'['}
			for l := rawjson.NewList(value, deepest); l.Next(); {
				if len(out) > 1 {
					out = append(out, ',')
				}
				out = append(out, spelledOut(l.Val)...)
			}
			return append(out, ']')
		case keyword == "not" && silent(value):
			return []byte("{}") // it has to hold for everything there
		case slices.Contains(mayBeTrue, keyword) && (value[0] != '{' || silent(value)):
			if value[0] == '{' {
				return []byte("true")
			}
			return value
		case at != none:
			return spelledOut(value)
		}
		return value
	})
}

// silent reports whether a schema holds for every value.
func silent(schema []byte) bool {
	o := rawjson.NewObject(schema, deepest)
	for o.Next() {
		if !slices.Contains(saysNothing, string(o.Name())) {
			return false
		}
	}
	return !o.Failed() || string(schema) == "true"
}

// deepest is how deeply schemas are looked into, which is as deeply as anything decodes them.
const deepest = 10000

// rewritten returns an object with other values for its members.
func rewritten(object []byte, value func(name string, was []byte) []byte) []byte {
	out, end := make([]byte, 0, len(object)), 0
	for o := rawjson.NewObject(object, deepest); o.Next(); {
		out = append(append(out, object[end:o.ValAt]...), value(string(o.Name()), o.Val)...)
		end = o.ValAt + len(o.Val)
	}
	return append(out, object[end:]...)
}
