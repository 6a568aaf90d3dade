package iat

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

var envelopeBlock = regexp.MustCompile("(?s)```json iat\n(.*?)```")

// TestEnvelopesOfTheProtocolAreVectors has each example of PROTOCOL.md be what a vector says, or what it delivers.
func TestEnvelopesOfTheProtocolAreVectors(t *testing.T) {
	text, err := os.ReadFile("../../PROTOCOL.md")
	must(t, err)
	known := map[string]bool{}
	for _, v := range load(t) {
		for _, e := range []json.RawMessage{v.Frame, v.Envelope} {
			if v.Error == nil && len(e) > 0 {
				known[compacted(t, e)] = true
			}
		}
	}
	blocks := envelopeBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 10 {
		t.Fatalf("PROTOCOL.md has %d blocks of envelopes", len(blocks))
	}
	for _, block := range blocks {
		for d := json.NewDecoder(strings.NewReader(block[1])); ; {
			var e json.RawMessage
			err := d.Decode(&e)
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if !known[compacted(t, e)] {
				t.Errorf("no vector has %s", e)
			}
		}
	}
}

func compacted(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	must(t, json.Compact(&b, raw))
	return b.String()
}
