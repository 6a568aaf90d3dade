package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// readProtocol returns PROTOCOL.md, and its sections by the type in their heading.
func readProtocol(t *testing.T) (text string, sections map[string]string) {
	t.Helper()
	b, err := os.ReadFile("../PROTOCOL.md")
	must(t, err)
	text, sections = string(b), map[string]string{}
	for section := range strings.SplitSeq(text, "\n## ") {
		for i, s := range strings.Split(section, "\n### `") {
			if name, rest, ok := strings.Cut(s, "`\n"); ok && i > 0 {
				if _, twice := sections[name]; twice {
					t.Errorf("PROTOCOL.md describes %s twice", name)
				}
				sections[name] = rest
			}
		}
	}
	return text, sections
}

func TestProtocolDescribesEveryFrame(t *testing.T) {
	_, sections := readProtocol(t)
	for _, r := range rows {
		section, ok := sections[r.name]
		if !ok {
			t.Errorf("PROTOCOL.md has no heading for %s", r.name)
			continue
		}
		delete(sections, r.name)
		for word := range strings.FieldsSeq(r.fields) {
			u, _ := parseUse(r, word)
			if key := fields[u.field].key; !inFieldTable(section, key) {
				t.Errorf("PROTOCOL.md says nothing of the %s of %s", key, r.name)
			}
		}
		if want := directions[r.from]; !strings.Contains(section, want) {
			t.Errorf("PROTOCOL.md does not say of %s: %s", r.name, want)
		}
	}
	for name := range sections {
		t.Errorf("PROTOCOL.md describes %s, which there is not", name)
	}
}

var directions = map[direction]string{
	fromClient: "Client → server.", fromServer: "Server → client.", fromBoth: "Both directions",
}

// inFieldTable reports whether a row of a section's table begins with the key, among others maybe.
func inFieldTable(section, key string) bool {
	return regexp.MustCompile("(?m)^\\| [^|]*`" + regexp.QuoteMeta(key) + "`[^|]*\\|").MatchString(section)
}

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)```")

func TestExamplesOfTheProtocolAreVectors(t *testing.T) {
	text, sections := readProtocol(t)
	vectors := map[string]bool{}
	for _, v := range load[vector](t, "relay", "spaces") {
		if v.Error == nil {
			vectors[compact(t, v.Frame)] = true
		}
	}
	for _, block := range jsonBlock.FindAllStringSubmatch(text, -1) {
		for d := json.NewDecoder(strings.NewReader(block[1])); ; {
			var frame json.RawMessage
			err := d.Decode(&frame)
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if !vectors[compact(t, frame)] {
				t.Errorf("no vector has %s", frame)
			}
			var f Frame
			if DecodeRequest(frame, &f, Limits{}) != nil && (DecodeAnswer(frame, &f) != nil || table.answers[f.Type] == nil) {
				t.Errorf("%s is no frame", frame)
			}
		}
	}
	for name, section := range sections {
		if !strings.Contains(section, `{"type":"`+name+`"`) {
			t.Errorf("PROTOCOL.md has no example of %s", name)
		}
	}
}

func TestProtocolHasTheTableOfErrors(t *testing.T) {
	text, _ := readProtocol(t)
	for _, code := range agora.Codes() {
		s := code.Status()
		row := fmt.Sprintf("\\| `%s` \\| %d \\| %d [A-Z_]+ \\| (–|[0-9]+) \\|", code, s.HTTP, s.GRPC)
		if !regexp.MustCompile(row).MatchString(text) {
			t.Errorf("PROTOCOL.md has no row %s", row)
		}
	}
}

// TestTheTableOfDialectsNamesItsVectors has each row name one that is there, and all that are named be there.
func TestTheTableOfDialectsNamesItsVectors(t *testing.T) {
	text, _ := readProtocol(t)
	_, chapter, _ := strings.Cut(text, "\n## Across dialects\n")
	_, table, _ := strings.Cut(chapter, "| Vectors |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[1:]
	if len(rows) < 9 {
		t.Fatalf("the table of dialects has %d rows", len(rows))
	}
	vectors := load[vector](t, "relay", "spaces")
	named := regexp.MustCompile("`((?:relay|spaces)/[a-z-]+)`")
	for _, row := range rows {
		all := named.FindAllStringSubmatch(row, -1)
		if len(all) == 0 {
			t.Errorf("no vector in %s", row)
		}
		for _, v := range all {
			if vectors[v[1]] == nil {
				t.Errorf("there is no vector %s", v[1])
			}
		}
	}
}

// TestLinksOfTheProtocolLead follows links within the page.
func TestLinksOfTheProtocolLead(t *testing.T) {
	text, _ := readProtocol(t)
	anchors := map[string]bool{}
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile("[^a-z0-9_ -]").ReplaceAllString(strings.ToLower(h[1]), "")
		anchors[strings.ReplaceAll(plain, " ", "-")] = true
	}
	for _, l := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		if !anchors[l[1]] {
			t.Errorf("PROTOCOL.md links to #%s, which is not there", l[1])
		}
	}
}
