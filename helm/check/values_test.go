package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	comments "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// value is one that values.yaml explains.
type value struct {
	path    []string
	preset  any
	explain string
}

// String returns its name, as --set has it.
func (v value) String() string { return strings.Join(v.path, ".") }

// chartValues returns the values of values.yaml, in its order.
func chartValues(t *testing.T) []value {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document comments.Node
	if err := comments.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	all := explained(t, nil, document.Content[0])
	if len(all) < 100 {
		t.Fatalf("%d values are explained: %v", len(all), all)
	}
	return all
}

// explained returns the values of a map: those with a comment that begins with "--", and those of the maps without one.
func explained(t *testing.T, path []string, n *comments.Node) (all []value) {
	t.Helper()
	for k := 0; k < len(n.Content); k += 2 {
		key, v := n.Content[k], n.Content[k+1]
		at := append(slices.Clone(path), key.Value)
		_, text, is := strings.Cut(key.HeadComment, "# -- ")
		switch {
		case is:
			one := value{path: at, explain: strings.ReplaceAll(text, "\n# ", " ")}
			if err := v.Decode(&one.preset); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		case v.Kind == comments.MappingNode && len(v.Content) > 0:
			all = append(all, explained(t, at, v)...)
		default:
			t.Errorf("values.yaml does not explain %s", strings.Join(at, "."))
		}
	}
	return all
}

// without returns values in which one is not said; false where it was not.
func without(t *testing.T, text string, path []string) (string, bool) {
	t.Helper()
	var all map[string]any
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	in := all
	for _, key := range path[:len(path)-1] {
		in, _ = in[key].(map[string]any)
	}
	last := path[len(path)-1]
	if _, said := in[last]; !said {
		return "", false
	}
	delete(in, last)
	out, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), true
}

// Some file of ci says something else than the chart does of itself, and something else comes of it.
func TestEveryValueMakesADifference(t *testing.T) {
	all, made := files(t), map[string]map[string]string{}
	for name, text := range all {
		texts, err := render(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		made[name] = texts
	}
	for _, v := range chartValues(t) {
		if !slices.ContainsFunc(slices.Sorted(maps.Keys(all)), func(name string) bool {
			rest, said := without(t, all[name], v.path)
			if !said {
				return false
			}
			texts, err := render(rest)
			return err != nil || !maps.Equal(texts, made[name]) // what is needed makes one, too
		}) {
			t.Errorf("%s: nothing comes of it in any file of ci", v)
		}
	}
}

// schemaNode is what the schema says of a value.
type schemaNode struct {
	Type       any                   `json:"type"`
	Properties map[string]schemaNode `json:"properties"`
}

func TestTheSchemaKnowsEveryValueAndNoOther(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema schemaNode
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // of a chart that this one is a part of
	text, err = os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var presets map[string]any
	if err := yaml.Unmarshal(text, &presets); err != nil {
		t.Fatal(err)
	}
	sameKeys(t, "", presets, schema)
}

// sameKeys holds the keys of values against those of their schema, where that names them.
func sameKeys(t *testing.T, at string, values map[string]any, schema schemaNode) {
	t.Helper()
	if len(schema.Properties) == 0 || len(values) == 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		node, known := schema.Properties[key]
		if !known {
			t.Errorf("the schema lacks %s%s", at, key)
		}
		if below, is := values[key].(map[string]any); is {
			sameKeys(t, at+key+".", below, node)
		}
	}
	for key := range schema.Properties {
		if _, is := values[key]; !is {
			t.Errorf("values.yaml lacks %s%s", at, key)
		}
	}
}

const tableBegin, tableEnd = "<!-- values -->\n", "<!-- end of values -->\n"

func TestTheReadmeHasEveryValue(t *testing.T) {
	var table strings.Builder
	table.WriteString("| Value | Default | What it is |\n|---|---|---|\n")
	for _, v := range chartValues(t) {
		var preset bytes.Buffer
		e := json.NewEncoder(&preset)
		e.SetEscapeHTML(false)
		if err := e.Encode(v.preset); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v, strings.TrimSpace(preset.String()), strings.ReplaceAll(v.explain, "|", `\|`))
	}
	name := filepath.Join(chartDir, "README.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	want := before + tableBegin + table.String() + tableEnd + after
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", name)
	}
	if os.Getenv("AGORA_UPDATE_DOCS") != "" {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Errorf("%s is not as values.yaml says: AGORA_UPDATE_DOCS=1 go test . -run Readme", name)
	}
}
