package agenttools

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// maxSchema bounds the bytes of a schema: hosts show all of it to their models.
const maxSchema = 16 << 10

// wrapper is the member of the arguments that holds what a tool takes, where its schema had to be wrapped.
const wrapper = "arguments"

// openSchema takes any object.
var openSchema = json.RawMessage(`{"type":"object"}`)

// notAtTop are the keywords that the makers of models refuse at the top of a tool's schema.
var notAtTop = []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "enum", "const", "if"}

// ofObjects are the keywords that say something of objects alone.
var ofObjects = []string{"properties", "required", "additionalProperties", "patternProperties", "propertyNames"}

// propertyKey is what the makers of models accept as the name of a property at the top.
var propertyKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// inputSchema returns the schema of a tool as MCP has it, one of an object. In place of a missing schema, and of one
// that can't be used, it returns one that takes any object. A schema that is not of an object, or that makers of models
// refuse, is wrapped: the tool takes it as the member "arguments" then, and [unwrap] is to be called.
func inputSchema(raw json.RawMessage) (schema json.RawMessage, wrapped bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || len(raw) > maxSchema || !json.Valid(raw) || string(raw) == "null" {
		return openSchema, false
	}
	if schema, wrapped = objectSchema(raw); !wellFormed(schema) || !accepted(schema) {
		return openSchema, false
	}
	if schema = spelledOut(schema); len(schema) > 2*maxSchema {
		return openSchema, false
	}
	return schema, wrapped
}

// accepted reports whether the library takes a schema: it panics at one that it refuses.
func accepted(schema json.RawMessage) (ok bool) {
	defer func() { ok = recover() == nil }()
	s := mcp.NewServer(&mcp.Implementation{Name: "schemas", Version: "0"}, nil)
	s.AddTool(&mcp.Tool{Name: "tool", InputSchema: schema}, nil)
	return true
}

// objectSchema returns JSON that is meant for a schema as one of an object.
func objectSchema(raw json.RawMessage) (schema json.RawMessage, wrapped bool) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		return wrap(raw), true
	}
	switch {
	case hasAny(top, notAtTop) || !plainProperties(top):
		return wrap(raw), true
	case isObject(top["type"]):
		if string(bytes.TrimSpace(top["type"])) == `"object"` {
			return raw, false
		}
	case top["type"] != nil || !hasAny(top, ofObjects) && !anything(top):
		return wrap(raw), true
	}
	return rawjson.With(rawjson.Without(raw, "type"), "type", []byte(`"object"`)), false
}

// isObject reports whether a value of "type" is object, or a list with object in it.
func isObject(typ json.RawMessage) bool {
	var one string
	var all []string
	return json.Unmarshal(typ, &one) == nil && one == "object" || json.Unmarshal(typ, &all) == nil && slices.Contains(all, "object")
}

// plainProperties reports whether the makers of models accept the names of all properties.
func plainProperties(top map[string]json.RawMessage) bool {
	if top["properties"] == nil {
		return true
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(top["properties"], &all) != nil {
		return false
	}
	for key := range all {
		if !propertyKey.MatchString(key) {
			return false
		}
	}
	return true
}

// anything reports whether a schema without a type only describes itself.
func anything(top map[string]json.RawMessage) bool {
	for key := range top {
		if !slices.Contains([]string{"$schema", "$id", "$comment", "title", "description", "examples"}, key) {
			return false
		}
	}
	return true
}

func hasAny(top map[string]json.RawMessage, keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return top[k] != nil })
}

// wrap returns the schema of an object whose one member is what a schema takes. References into the schema are led to
// where it is then, unless it has an $id to which they belong.
func wrap(raw json.RawMessage) json.RawMessage {
	if bytes.Contains(raw, []byte(`ref"`)) || bytes.Contains(raw, []byte(`Ref"`)) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err == nil {
			raw = encoded(moved(v))
		}
	}
	return slices.Concat([]byte(`{"type":"object","properties":{"`+wrapper+`":`), raw, []byte(`},"required":["`+wrapper+`"]}`))
}

// moved leads the references of a schema to its place in a wrapper.
func moved(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, own := v["$id"].(string); own {
			return v
		}
		for key, value := range v {
			if ref, ok := value.(string); ok && key == "$ref" && (ref == "#" || strings.HasPrefix(ref, "#/")) {
				v[key] = "#/properties/" + wrapper + strings.TrimPrefix(ref, "#")
			} else {
				v[key] = moved(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = moved(v[i])
		}
	}
	return v
}

// unwrap returns what a tool takes from the arguments of a call of its wrapped schema. INVALID_REQUEST.
func unwrap(raw json.RawMessage) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err == nil && len(all) == 1 && all[wrapper] != nil {
		return all[wrapper], nil
	}
	return nil, agora.Errorf(agora.InvalidRequest, "the arguments must be an object whose one member is %q", wrapper)
}

// encoded returns a value that was decoded from JSON as JSON again.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return openSchema
	}
	return bytes.TrimSpace(b.Bytes())
}
