package aip

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
)

var there = Route{"al", "box"}

func TestAToolRequestIsTheCallItWasMadeOf(t *testing.T) {
	for _, arguments := range []string{"", "{}", `{"q": 1.0}`, `[1]`, `"x"`} {
		call := ToolCall{Name: "search", Arguments: []byte(arguments)}
		want := arguments
		if arguments == "" {
			call.Arguments, want = nil, "{}"
		}
		raw := AppendToolRequest(nil, there, "s", call)
		var r ToolRequest
		if err := proto.Unmarshal(raw, &r); err != nil || !proto.Equal(&r, &ToolRequest{SenderId: "al", ReceiverId: "box", SessionId: "s", ToolName: "search", Arguments: want}) {
			t.Errorf("%s is %v, %v", arguments, &r, err)
		}
		e, err := ReadToolEnvelope(raw)
		if err != nil || e.Route() != there || string(e.Session) != "s" {
			t.Errorf("%s is read as %+v, %v", arguments, e, err)
		}
		if got, err := e.Call(); err != nil || got.Name != "search" || string(got.Arguments) != want {
			t.Errorf("%s is called as %+v, %v", arguments, got, err)
		}
	}
}

func TestACallThatIsNoneIsRefused(t *testing.T) {
	for name, e := range map[string]ToolEnvelope{
		"no tool": {Arguments: []byte("{}")}, "no JSON": {Tool: []byte("t"), Arguments: []byte("a=1")}, "two values": {Tool: []byte("t"), Arguments: []byte("{}{}")},
		"too deep": {Tool: []byte("t"), Arguments: []byte(strings.Repeat("[", 64) + strings.Repeat("]", 64))},
	} {
		if _, err := e.Call(); !isCode(err, agora.InvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c, err := (&ToolEnvelope{Tool: []byte("t"), Arguments: []byte(" \n")}).Call(); err != nil || c.Arguments != nil {
		t.Errorf("no arguments: %+v, %v", c, err)
	}
}

func TestAToolsAnswerComesBackAsItWas(t *testing.T) {
	thousand(t, func(t *rapid.T) {
		body := []byte(rapid.SampledFrom(oddTexts).Draw(t, "payload"))
		if !isJSON(body) {
			body = nil
		}
		var a ToolAnswer
		if err := a.Add(&agora.Message{Kind: agora.Reply, Body: body}); err != nil {
			t.Fatal(err)
		}
		raw := a.Append(nil, there, "s")
		var r ToolResponse
		if err := proto.Unmarshal(raw, &r); err != nil || r.GetIsError() || r.GetSenderId() != "al" || r.GetReceiverId() != "box" || r.GetSessionId() != "s" {
			t.Fatalf("%s is %v, %v", body, &r, err)
		}
		m, failed, err := ToolResult(raw)
		if err != nil || failed != nil || m.Kind != agora.Reply || m.Part != agora.Whole || (m.Body == nil) != (body == nil) {
			t.Fatalf("%s came back as %+v, %v, %v", body, m, failed, err)
		}
		if !sameItems(ItemsOf(&m), ItemsOf(&agora.Message{Body: body})) {
			t.Fatalf("%s came back as %s", body, m.Body)
		}
	})
}

func TestAStreamedAnswerOfAToolIsGathered(t *testing.T) {
	var a ToolAnswer
	for _, m := range []*agora.Message{
		reply(agora.Start, "r", `"begins"`), reply(agora.Chunk, "r", `"on"`), reply(agora.Chunk, "r", `"e "`), {Kind: agora.Reply, Part: agora.Chunk, Body: []byte("two"), Media: agora.MediaText},
		{Kind: agora.Reply, Part: agora.Chunk, Body: []byte{1}, Media: "image/png;item=1"}, {Kind: agora.Reply, Part: agora.Chunk, Body: []byte{2}, Media: "image/png;item=1"},
		reply(agora.Chunk, "r", `"three"`), reply(agora.End, "r", `{"n":3}`),
	} {
		if err := a.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	want := []Item{text("begins"), text("one two"), {Mode_IMAGE, []byte{1, 2}}, text("three"), text(`{"n":3}`)}
	got, err := contentOf(a.Append(nil, there, "s"), fieldToolContent)
	if err != nil || !sameItems(got, want) {
		t.Errorf("gathered %v, %v, want %v", got, err, want)
	}
	small := ToolAnswer{Most: 4}
	err = errors.Join(small.Add(reply(agora.Start, "r", "")), small.Add(reply(agora.Chunk, "r", `"1234"`)))
	if err != nil || !isCode(small.Add(reply(agora.Chunk, "r", `"5"`)), agora.MessageTooLarge) {
		t.Errorf("an answer that is too large is taken, %v", err)
	}
	if err := a.Add(reply(agora.Cancel, "r", "")); !isCode(err, agora.StreamAborted) {
		t.Errorf("a cancel: %v", err)
	}
}

func TestAToolsErrorIsToldBothWays(t *testing.T) {
	raw := AppendToolError(nil, there, "s", agora.Errorf(agora.NotFound, "no such file"))
	var r ToolResponse
	if err := proto.Unmarshal(raw, &r); err != nil || !proto.Equal(&r, &ToolResponse{SenderId: "al", ReceiverId: "box", SessionId: "s", IsError: true, ErrorMessage: "no such file"}) {
		t.Errorf("got %v, %v", &r, err)
	}
	_, failed, err := ToolResult(raw)
	if err != nil || failed == nil || failed.Message != "no such file" {
		t.Errorf("got %v, %v", failed, err)
	}
	for want, r := range map[string]*ToolResponse{
		"The tool has failed": {IsError: true}, "why": {IsError: true, Content: []*ContentItem{{Data: &ContentItem_Image{}}, {Data: &ContentItem_Text{Text: "why"}}}},
	} {
		if _, failed, err := ToolResult(encoded(t, r)); err != nil || failed == nil || failed.Message != want {
			t.Errorf("got %v, %v, want %q", failed, err, want)
		}
	}
	for _, raw := range []string{"\x0a", "\x32\x01\x08", "\x2a\x01\xff"} {
		if _, _, err := ToolResult([]byte(raw)); !isCode(err, agora.StreamAborted) {
			t.Errorf("%x: %v", raw, err)
		}
	}
}

func TestGatheringDoesNotWriteIntoWhatItWasGiven(t *testing.T) {
	shared := []byte("onetwo")
	var a ToolAnswer
	for _, m := range []agora.Message{{Part: agora.Chunk, Body: shared[:3], Media: agora.MediaText}, {Part: agora.Chunk, Body: []byte("xyz"), Media: agora.MediaText}} {
		if err := a.Add(&m); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(shared, []byte("onetwo")) {
		t.Errorf("it is %s now", shared)
	}
}
