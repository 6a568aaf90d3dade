package aip

import (
	"context"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// AddFunc adds a tool whose arguments are a struct, as encoding/json reads them. Where tool.Arguments is empty, it
// becomes the JSON Schema of that struct, in which fields without omitempty and omitzero are required. The rest is as
// of [Toolbox.AddTool]; arguments that do not suit make a response with IsError.
func AddFunc[A any](t *Toolbox, tool Tool, f func(ctx context.Context, arguments A) (any, error)) error {
	if tool.Arguments == "" {
		schema, err := marshal(schemaOf(reflect.TypeFor[A](), 0))
		if err != nil {
			return err
		}
		tool.Arguments = schema
	}
	return t.AddTool(tool, func(ctx context.Context, raw json.RawMessage) (any, error) {
		var arguments A
		if err := json.Unmarshal(raw, &arguments); err != nil {
			return nil, err
		}
		return f(ctx, arguments)
	})
}

// schema is a JSON Schema, as far as it is needed here. The zero value takes anything.
type schema struct {
	Type       string            `json:"type,omitempty"`
	Properties map[string]schema `json:"properties,omitempty"`
	Required   []string          `json:"required,omitempty"`
	Items      *schema           `json:"items,omitempty"`
}

// deepest is how deep a schema goes; below it, types may be their own parts.
const deepest = 5

// schemaOf returns the schema of what a type is as JSON. Types that read themselves take anything.
func schemaOf(t reflect.Type, depth int) schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch p := reflect.PointerTo(t); {
	case depth > deepest, p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return schema{}
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return schema{Type: "string"}
	case reflect.Bool:
		return schema{Type: "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schema{Type: "integer"}
	case reflect.Float32, reflect.Float64:
		return schema{Type: "number"}
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return schema{Type: "string"} // base64
		}
		items := schemaOf(t.Elem(), depth+1)
		return schema{Type: "array", Items: &items}
	case reflect.Map:
		return schema{Type: "object"}
	case reflect.Struct:
		return structSchema(t, depth)
	}
	return schema{}
}

func structSchema(t reflect.Type, depth int) schema {
	s := schema{Type: "object", Properties: map[string]schema{}}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		s.Properties[name] = schemaOf(f.Type, depth+1)
		if !strings.Contains(options, "omit") && f.Type.Kind() != reflect.Pointer {
			s.Required = append(s.Required, name)
		}
	}
	return s
}
