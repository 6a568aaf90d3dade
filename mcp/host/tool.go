package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// texter is a result of a tool.
type texter interface{ text() string }

// addTool adds a tool whose results have a short text, which text makes of them, beside their structure. What goes
// wrong is a result with isError. Values within its arguments and its results keep their bytes: the library's own way
// to add a tool would spell them again.
func addTool[In any, Out texter](h *Host, s *mcp.Server, t *mcp.Tool, f func(context.Context, *mcp.CallToolRequest, In) (Out, error)) {
	described := *t
	takes := schemaOf[In]()
	described.InputSchema, described.OutputSchema = takes, schemaOf[Out]()
	resolved, err := takes.Resolve(nil)
	if err != nil {
		panic(err) // a type of this package that no schema describes
	}
	s.AddTool(&described, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		h.bell.confirm()
		in, err := arguments[In](req.Params.Arguments, resolved)
		if err != nil {
			return failure(err), nil
		}
		out, err := f(ctx, req, in)
		if err != nil {
			return failure(err), nil
		}
		said, err := encode(out)
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: out.text()}}, StructuredContent: said}, nil
	})
}

// failure is the result of a call that went wrong.
func failure(err error) *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	r.SetError(err)
	return r
}

// arguments returns the arguments of a call, which must be as their schema says. One that is null counts as left out:
// that is how some models leave one out. The error is for a model.
func arguments[In any](raw json.RawMessage, schema *jsonschema.Resolved) (in In, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	var all map[string]json.RawMessage
	if err = json.Unmarshal(raw, &all); err == nil {
		kinds := map[string]any{}
		for name, value := range all {
			if kind := kindIn(value); kind != nil {
				kinds[name] = kind
			}
		}
		err = schema.Validate(kinds)
	}
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil {
		err = fmt.Errorf("validating \"arguments\": %w", err)
	}
	return in, err
}

// kindIn returns what a schema of this package looks at in a value, which is of what kind it is: an object or a list
// stands for each of its kind. nil for null.
func kindIn(value json.RawMessage) (kind any) {
	switch value[0] {
	case '{':
		return map[string]any{}
	case '[':
		return []any{}
	}
	if json.Unmarshal(value, &kind) != nil {
		return 0.0 // a number that is valid JSON, and larger than any that is decoded
	}
	return kind
}

// spoken is a text that a model gives, as it has spelled it; empty for none.
type spoken []byte

// anything is JSON that a model gives, as it has spelled it; empty for none.
type anything []byte

// members is an object that a model gives, as it has spelled it; empty for none.
type members []byte

func (s *spoken) UnmarshalJSON(b []byte) error   { *s = given(b); return nil }
func (a *anything) UnmarshalJSON(b []byte) error { *a = given(b); return nil }
func (m *members) UnmarshalJSON(b []byte) error  { *m = given(b); return nil }

// given returns a copy of a value; nothing where that is null, or a text without a character.
func given(b []byte) []byte {
	if string(b) == "null" || string(b) == `""` {
		return nil
	}
	return bytes.Clone(b)
}

// spelled are the schemas of the types above, and of JSON of others. Each says of which types it may be, also where
// that is any: hosts refuse schemas that say nothing, and makers of models lists of types, and lists without items.
var spelled = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[spoken](): {Type: "string"},
	reflect.TypeFor[anything](): {AnyOf: slices.Insert(ofTypes("object", "string", "number", "boolean"), 1,
		&jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{AnyOf: ofTypes("object", "string", "number", "boolean")}})},
	reflect.TypeFor[members](): {Type: "object"},
	reflect.TypeFor[any]():     {AnyOf: ofTypes("object", "array", "string", "number", "boolean", "null")},
}

func ofTypes(names ...string) (all []*jsonschema.Schema) {
	for _, name := range names {
		all = append(all, &jsonschema.Schema{Type: name})
	}
	return all
}

// schemaOf returns the schema of a type, with one type for each place: not every host understands a list of them.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: spelled})
	if err != nil {
		panic(err) // a type of this package that is no JSON
	}
	simplify(s)
	return s
}

func simplify(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	simplify(s.Items)
	for _, p := range s.Properties {
		simplify(p)
	}
}

// errNothingSaid is the error for a model that says nothing.
var errNothingSaid = errors.New("give the text to send, or a payload")
