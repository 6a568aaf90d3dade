package agenttools

import (
	"bytes"

	"github.com/agora-relay/agora/internal/rawjson"
)

// anyJSON is a schema that takes anything, as one that says so. Hosts refuse a whole list of tools in which the schema of one property is `true`, and some that of `{}`.
const anyJSON = `{"description":"any JSON"}`

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

// spelledOut returns a well-formed schema in which no schema is `true` or `{}`, and none of a property is `false`. All else keeps its bytes.
func spelledOut(schema []byte) []byte {
	switch bare := string(bytes.Join(bytes.Fields(schema), nil)); {
	case bare == "true", bare == "{}":
		return []byte(anyJSON)
	case schema[0] != '{':
		return schema
	}
	return rewritten(schema, func(keyword string, value []byte) []byte {
		switch at := schemasIn(keyword); {
		case at == byName && value[0] == '{':
			return rewritten(value, func(_ string, s []byte) []byte {
				if string(s) == "false" {
					return []byte(`{"not":` + anyJSON + `}`)
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
		case at != none:
			return spelledOut(value)
		}
		return value
	})
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
