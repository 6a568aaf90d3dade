package wire

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestExamplesAreThoseOfTheProtocol holds that the document's example of a frame is the first in the section of PROTOCOL.md about it, or else the first vector.
// AGORA_UPDATE_DOCS=1 writes them.
func TestExamplesAreThoseOfTheProtocol(t *testing.T) {
	t.Parallel()
	_, sections := readProtocol(t)
	vectors := load[vector](t, "relay", "spaces")
	var lines strings.Builder
	for _, s := range Schemas(Limits{}) {
		var candidates []json.RawMessage
		for _, block := range jsonBlock.FindAllStringSubmatch(sections[s.Type], -1) {
			for d := json.NewDecoder(strings.NewReader(block[1])); d.More(); {
				var frame json.RawMessage
				must(t, d.Decode(&frame))
				candidates = append(candidates, frame)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(vectors)) {
			if v := vectors[name]; v.Error == nil && (v.From == "client") == s.Client {
				candidates = append(candidates, v.bytes(t))
			}
		}
		first := slices.IndexFunc(candidates, func(b json.RawMessage) bool { return fits(s, b) })
		if first < 0 {
			t.Errorf("no example of %s", messageName(s))
			continue
		}
		lines.WriteString(messageName(s) + " " + compact(t, candidates[first]) + "\n")
	}
	const path = "examples.txt"
	if os.Getenv("AGORA_UPDATE_DOCS") != "" {
		must(t, os.WriteFile(path, []byte(lines.String()), 0o644))
	} else if lines.String() != exampleLines {
		t.Errorf("%s says something else; AGORA_UPDATE_DOCS=1 writes it anew", path)
	}
}

// fits reports whether a frame is one of those that a schema describes.
func fits(s FrameSchema, b []byte) bool {
	var f Frame
	if s.Client {
		return DecodeRequest(b, &f, Limits{}) == nil && f.Type == s.Type
	}
	return DecodeAnswer(b, &f) == nil && f.Type == s.Type
}

func TestTheDocumentHasEveryFrame(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(AsyncAPI(Limits{}))
	must(t, err)
	var doc struct {
		Components struct {
			Messages map[string]struct {
				Summary  string
				Examples []struct{ Payload json.RawMessage }
			}
		}
		Operations map[string]struct{ Messages []any }
	}
	must(t, json.Unmarshal(b, &doc))
	schemas := Schemas(Limits{})
	for _, s := range schemas {
		m := doc.Components.Messages[messageName(s)]
		if m.Summary == "" || len(m.Examples) != 1 || !fits(s, m.Examples[0].Payload) {
			t.Errorf("%s is %+v", messageName(s), m)
		}
	}
	if sent := len(doc.Operations["fromClient"].Messages) + len(doc.Operations["fromServer"].Messages); sent != len(schemas) || len(doc.Components.Messages) != len(schemas) {
		t.Errorf("%d messages of operations, and %d in all, want %d", sent, len(doc.Components.Messages), len(schemas))
	}
}
