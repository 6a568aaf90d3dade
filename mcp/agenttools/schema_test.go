package agenttools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const open = `{"type":"object"}`

// wrappedIn is the schema of an object that has one member.
func wrappedIn(schema string) string {
	return `{"type":"object","properties":{"arguments":` + schema + `},"required":["arguments"]}`
}

// anyValue is how a schema is offered that takes anything.
var anyValue = `{"anyOf":` + string(anyJSON) + `}`

func TestSchemasOfToolsAreOfferedAsSchemasOfObjects(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		``:     open,
		`null`: open,
		`{`:    open,
		`{}`:   open,
		` {"type": "object", "properties":{"a":{"type":"integer"}}} `: `{"type": "object", "properties":{"a":{"type":"integer"}}}`,
		`{"properties":{"a":true}}`:                                   `{"properties":{"a":` + anyValue + `},"type":"object"}`,
		`{"type":["object","null"]}`:                                  open,
		`true`:                                                        wrappedIn(anyValue),
		`[]`:                                                          open,
		`7`:                                                           open,
		`{"type":"array","items":{"type":"string"}}`: wrappedIn(`{"type":"array","items":{"type":"string"}}`),
		`{"minimum":3}`: wrappedIn(`{"minimum":3}`),
		`{"type":"object","anyOf":[{"required":["a"]}]}`:  wrappedIn(`{"type":"object","anyOf":[{"required":["a"]}]}`),
		`{"type":"object","properties":{"größe":{}}}`:     wrappedIn(`{"type":"object","properties":{"größe":` + anyValue + `}}`),
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#"}}}`: wrappedIn(`{"$defs":{"a":{"$ref":"#/properties/arguments"}},"$ref":"#/properties/arguments/$defs/a"}`),
		`{"$id":"u:1","$ref":"#/$defs/a"}`:                wrappedIn(`{"$id":"u:1","$ref":"#/$defs/a"}`),
		`{"properties":{"a":{"type":"any"}}}`:             open,
		`{"type":"object","properties":{"z":{"items":{ },"not":true,"anyOf":[true,{"maximum":1.0}]},"a":false},"additionalProperties":{},"default":{}}`: `{"type":"object","properties":{"z":{"items":` + anyValue + `,` +
			`"not":{},"anyOf":[` + anyValue + `,{"maximum":1.0}]},"a":{"not":{}}},"additionalProperties":true,"default":{}}`,
		`{"type":"object","properties":[]}`:                        open,
		`{"type":"object","required":["a","a"]}`:                   open,
		`{"type":"object","properties":{"a":{"x-mcp-header":""}}}`: open,
		`{"description":"` + strings.Repeat("x", maxSchema) + `"}`: open,
	} {
		schema, wrapped := inputSchema(json.RawMessage(given))
		if string(schema) != want || wrapped != strings.HasPrefix(want, `{"type":"object","properties":{"arguments":`) {
			t.Errorf("inputSchema(%.80s) = %s, wrapped %t, want %s", given, schema, wrapped, want)
		}
	}
}

func TestWrappedArgumentsAreUnwrapped(t *testing.T) {
	t.Parallel()
	if got, err := unwrap(json.RawMessage(`{"arguments": [1.0] }`)); err != nil || string(got) != `[1.0]` {
		t.Errorf("unwrap = %s, %v", got, err)
	}
	for _, bad := range []string{``, `null`, `[1]`, `{}`, `{"Arguments":1}`, `{"arguments":1,"more":2}`} {
		if got, err := unwrap(json.RawMessage(bad)); err == nil {
			t.Errorf("unwrap(%s) = %s, want an error", bad, got)
		}
	}
}

// FuzzASchemaNeverTakesTheServerDown gives schemas of foreign agents to a server.
func FuzzASchemaNeverTakesTheServerDown(f *testing.F) {
	for _, s := range []string{`{}`, `true`, `[]`, `{"type":"object","properties":{"a":{"x-mcp-header":1}}}`, `{"$ref":"#/a","type":["object"]}`,
		`{"type":"object","type":"array"}`, `{"properties":{"a":{"items":{"not":false}}}}`} {
		f.Add([]byte(s))
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		schema, wrapped := inputSchema(raw)
		s.AddTool(&mcp.Tool{Name: "tool", InputSchema: schema}, nil)
		var top struct {
			Type       string
			Properties map[string]json.RawMessage
		}
		if err := json.Unmarshal(schema, &top); err != nil || top.Type != "object" || wrapped && top.Properties[wrapper] == nil {
			t.Fatalf("inputSchema(%q) = %s, wrapped %t, %v", raw, schema, wrapped, err)
		}
	})
}
