package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agora-relay/agora"
)

// probes are values that take the place of others: one on each side of every bound.
func probes(l Limits) []any {
	texts := []string{"", "x", "agora", "a b", "a\nb", "a\u00a0b", "a\u200bb", "a\ufeffb", "stored", "😀"}
	for _, n := range []int{l.Name, agora.MaxIDLength, maxLongText} {
		texts = append(texts, strings.Repeat("é", n), strings.Repeat("é", n+1))
	}
	all := []any{nil, true, false, map[string]any{}, map[string]any{"text": "x"}, map[string]any{"text": 1}, map[string]any{"name": "x"}, []any{}, []any{"x"}, []any{"acked"}, []any{nil}, []any{map[string]any{}}}
	for _, n := range []int{maxToken, maxPath} {
		all = append(all, strings.Repeat("x", n), strings.Repeat("x", n+1))
	}
	for _, text := range texts {
		all = append(all, text, []any{text}, map[string]any{text: 1})
	}
	for _, number := range strings.Fields("-1 0 1 1.5 99 100 999 1000 2147483647 2147483648 4294967295 4294967296 9007199254740990 9007199254740991") {
		all = append(all, json.Number(number), map[string]any{"x": json.Number(number)})
	}
	for _, n := range []int{l.Count, l.Count + 1} {
		positions := map[string]any{}
		for i := range n {
			positions[fmt.Sprint("s", i)] = 1
		}
		all = append(all, slices.Repeat([]any{"stored"}, n), positions)
	}
	return all
}

// gone stands for a member that is left out.
type gone struct{}

// variants calls visit with v changed in one place, as often as there are probes for its places.
func variants(v any, probes []any, visit func(any)) {
	switch v := v.(type) {
	case map[string]any:
		for key, old := range v {
			set := func(now any) {
				changed := maps.Clone(v)
				if _, out := now.(gone); out {
					delete(changed, key)
				} else {
					changed[key] = now
				}
				visit(changed)
			}
			if key != "type" || v["type"] != old {
				variants(old, probes, set)
			}
			set(gone{})
			for _, p := range probes {
				set(p)
			}
		}
	case []any:
		if len(v) == 0 {
			return
		}
		set := func(now any) { visit(append([]any{now}, v[1:]...)) } // entries are all alike
		variants(v[0], probes, set)
		for _, p := range probes {
			set(p)
		}
	}
}

// TestSchemasTakeWhatIsDecoded changes a frame of every type in one place after the other, and has both judge it.
func TestSchemasTakeWhatIsDecoded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	usual, small := Limits{Count: 5}.withDefaults(), Limits{Name: 20, Count: 3}.withDefaults()
	for _, side := range []struct {
		limits Limits
		client bool
	}{{usual, true}, {small, true}, {small, false}} {
		schemas, full, probes := compiled(t, side.limits, side.client), fullFrames(t, side.client), probes(side.limits)
		for _, name := range slices.Sorted(maps.Keys(schemas)) {
			variants(full[name], probes, func(v any) { agree(t, schemas, v, side.limits, side.client) })
		}
	}
}

// fullFrames returns the longest vector of each type from one side, with all fields that the table has for it.
func fullFrames(t *testing.T, client bool) map[string]map[string]any {
	all, size := map[string]map[string]any{}, map[string]int{}
	vectors := load[vector](t, "relay", "spaces")
	for _, name := range slices.Sorted(maps.Keys(vectors)) {
		v := vectors[name]
		var f Frame
		if (v.From == "client") != client || v.Error != nil || v.decode(v.bytes(t), &f) != nil || len(v.bytes(t)) <= size[f.Type] {
			continue
		}
		frame, err := jsonschema.UnmarshalJSON(bytes.NewReader(v.bytes(t)))
		must(t, err)
		all[f.Type], size[f.Type] = frame.(map[string]any), len(v.bytes(t))
	}
	shapes := table.answers
	if client {
		shapes = table.requests
	}
	for name, s := range shapes {
		for _, u := range s.fields {
			if _, ok := all[name][fields[u.field].key]; !ok {
				all[name][fields[u.field].key] = nil // as good as left out
			}
		}
	}
	return all
}

func agree(t *testing.T, schemas map[string]*jsonschema.Schema, frame any, l Limits, client bool) {
	members, _ := frame.(map[string]any)
	schema := schemas[fmt.Sprint(members["type"])]
	if schema == nil {
		return
	}
	b, err := json.Marshal(frame)
	must(t, err)
	var f Frame
	if client {
		err = DecodeRequest(b, &f, l)
	} else {
		err = DecodeAnswer(b, &f)
	}
	if err != nil && strings.Contains(err.Error(), "nested too deeply") {
		return // which no schema counts
	}
	if bad := schema.Validate(frame); (bad == nil) != (err == nil) {
		t.Errorf("%.300s\n is decoded with %v; its schema says %.400v", b, err, bad)
	}
}
