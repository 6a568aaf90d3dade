package aip

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

var messageBlock = regexp.MustCompile("(?s)```json aip\n(.*?)```")

// protocol returns PROTOCOL.md.
func protocol(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../PROTOCOL.md")
	must(t, err)
	return string(text)
}

// TestMessagesOfTheProtocolAreVectors has each example of PROTOCOL.md be a message that a vector has.
func TestMessagesOfTheProtocolAreVectors(t *testing.T) {
	known := map[string]bool{}
	for _, v := range load(t) {
		for _, m := range append(append([]json.RawMessage{v.Agent, v.Toolbox, v.Peer, v.Request, v.Told}, v.Quests...), v.Responses...) {
			if v.Error == nil && m != nil {
				known[ordered(t, m)] = true
			}
		}
		known[ordered(t, []byte(asJSON(t, map[string]any{"content": v.Content})))] = true
	}
	blocks := messageBlock.FindAllStringSubmatch(protocol(t), -1)
	if len(blocks) < 5 {
		t.Fatalf("PROTOCOL.md has %d blocks of messages", len(blocks))
	}
	for _, block := range blocks {
		for d := json.NewDecoder(strings.NewReader(block[1])); ; {
			var m json.RawMessage
			err := d.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if !known[ordered(t, m)] {
				t.Errorf("no vector has %s", m)
			}
		}
	}
}

// ordered returns a message with its members in the order of their names.
func ordered(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	must(t, d.Decode(&v))
	return asJSON(t, v)
}

func TestTheTableOfDialectsNamesVectorsThatAreThere(t *testing.T) {
	all, named := load(t), 0
	for _, name := range regexp.MustCompile("`aip/([a-z0-9-]+)`").FindAllStringSubmatch(protocol(t), -1) {
		if named++; all[name[1]] == nil {
			t.Errorf("there is no vector %s", name[1])
		}
	}
	if named < 9 {
		t.Errorf("PROTOCOL.md names %d vectors", named)
	}
}

// TestTheProtocolHasEveryMethodAndStatus has PROTOCOL.md speak of all that the proto has.
func TestTheProtocolHasEveryMethodAndStatus(t *testing.T) {
	_, chapter, _ := strings.Cut(protocol(t), "\n## AIP\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	words := []string{TextFirstNotStart, TextNoSession, TextNoReceiver, TextEmpty, "Agent [x] already registered.", "Tool [x] already registered.", "Address [x] already registered.", UnknownNode("x")}
	for _, m := range GatewayService_ServiceDesc.Methods {
		words = append(words, m.MethodName)
	}
	for _, s := range GatewayService_ServiceDesc.Streams {
		words = append(words, s.StreamName)
	}
	for _, name := range AgentMessage_SessionStatus_name {
		words = append(words, name)
	}
	for _, w := range words {
		if !strings.Contains(chapter, "`"+w+"`") {
			t.Errorf("the chapter does not have `%s`", w)
		}
	}
}
