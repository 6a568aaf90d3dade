package p2p

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var exampleBlock = regexp.MustCompile("(?s)```json p2p\n(.*?)```")

// protocol returns the chapter of PROTOCOL.md.
func protocol(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../PROTOCOL.md")
	must(t, err)
	_, chapter, _ := strings.Cut(string(text), "\n## Card and handoff (libp2p)\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	return chapter
}

// TestExamplesOfTheProtocolAreVectors has each example of PROTOCOL.md be what a vector takes, or what it writes.
func TestExamplesOfTheProtocolAreVectors(t *testing.T) {
	known := map[string]bool{}
	for _, v := range load(t) {
		for _, text := range []*string{v.Stream, &v.Written, &v.Payload, v.Answer, v.Card, &v.Shown, &v.Proof} {
			if v.Error == 0 && text != nil {
				known[*text] = true
			}
		}
	}
	blocks := exampleBlock.FindAllStringSubmatch(protocol(t), -1)
	if len(blocks) < 6 {
		t.Fatalf("PROTOCOL.md has %d examples", len(blocks))
	}
	for _, block := range blocks {
		if !known[strings.TrimSpace(block[1])] {
			t.Errorf("no vector has %s", block[1])
		}
	}
}

// TestTheProtocolHasEveryNumber has PROTOCOL.md speak of all that is written, and of no other.
func TestTheProtocolHasEveryNumber(t *testing.T) {
	chapter := protocol(t)
	_, failures, _ := strings.Cut(chapter, "\n### libp2p: failures\n")
	var rows []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d{3}) \|`).FindAllStringSubmatch(failures, -1) {
		rows = append(rows, row[1])
	}
	var want []string
	for n := range codes {
		want = append(want, fmt.Sprint(n))
	}
	slices.Sort(rows)
	slices.Sort(want)
	if !slices.Equal(rows, want) {
		t.Errorf("PROTOCOL.md has the numbers %v, want %v", rows, want)
	}
	for _, word := range []string{CardProtocol, HandoffProtocol, `"action":"handoff"`, "/tools/{name}", "/agents/{id}/"} {
		if !strings.Contains(chapter, word) {
			t.Errorf("PROTOCOL.md does not have %s", word)
		}
	}
}
