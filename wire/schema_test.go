package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled returns the schemas of one side's frames, by type.
func compiled(t *testing.T, l Limits, client bool) map[string]*jsonschema.Schema {
	t.Helper()
	all := map[string]*jsonschema.Schema{}
	for _, s := range Schemas(l) {
		if s.Client != client {
			continue
		}
		if s.Summary == "" {
			t.Errorf("nothing says what %s is for", s.Type)
		}
		b, err := json.Marshal(s.Schema)
		must(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		must(t, err)
		for _, draft := range []*jsonschema.Draft{jsonschema.Draft7, jsonschema.Draft2020} {
			c := jsonschema.NewCompiler()
			c.DefaultDraft(draft)
			must(t, c.AddResource("frame.json", doc))
			if all[s.Type], err = c.Compile("frame.json"); err != nil {
				t.Fatalf("%s is no schema: %v", s.Type, err)
			}
		}
	}
	return all
}

const beyondHead = `# Vectors that are refused though they fit the schema of their frame. A schema judges what a reader has made of JSON: there no key stands twice,
# 1.0 is 1, and bytes and halves of surrogate pairs have become characters; and it does not count how deep values are.
`

// TestEveryVectorFitsTheSchemaOfItsFrame holds frames against their schemas: what is decoded fits, and what is refused does not, but for
// what testdata/beyond_schemas.txt names. AGORA_UPDATE_DOCS=1 writes that.
func TestEveryVectorFitsTheSchemaOfItsFrame(t *testing.T) {
	t.Parallel()
	sides := map[string]map[string]*jsonschema.Schema{"client": compiled(t, Limits{}, true), "server": compiled(t, Limits{}, false)}
	var beyond []string
	vectors := load[vector](t, "relay", "spaces")
	for _, name := range slices.Sorted(maps.Keys(vectors)) {
		v := vectors[name]
		frame, err := jsonschema.UnmarshalJSON(bytes.NewReader(v.bytes(t)))
		if err != nil {
			continue // no JSON
		}
		members, _ := frame.(map[string]any)
		typ, _ := members["type"].(string)
		schema := sides[v.From][typ]
		if schema == nil {
			if v.Error == nil && v.Message != nil {
				t.Errorf("%s: no schema for %q from the %s", name, typ, v.From)
			}
			continue
		}
		switch err := schema.Validate(frame); {
		case v.Error == nil && err != nil:
			t.Errorf("%s is decoded, and does not fit its schema: %v", name, err)
		case v.Error != nil && err == nil:
			beyond = append(beyond, name+": "+v.About)
		}
	}
	const path = "testdata/beyond_schemas.txt"
	got := beyondHead + strings.Join(beyond, "\n") + "\n"
	if os.Getenv("AGORA_UPDATE_DOCS") != "" {
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got != string(want) {
		t.Errorf("%s says something else; AGORA_UPDATE_DOCS=1 writes it anew:\n%s", path, got)
	}
}
