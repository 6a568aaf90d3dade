package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agora-relay/agora"
)

// FuzzDecodeRequest holds that decoding never panics, that whatever it takes is
// JSON and UTF-8, and that a frame written again is the same frame.
func FuzzDecodeRequest(f *testing.F) {
	for _, v := range load[vector](f, "relay", "spaces") {
		f.Add(v.bytes(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range []func([]byte, *Frame) error{
			func(b []byte, f *Frame) error { return DecodeRequest(b, f, Limits{}) }, DecodeAnswer,
		} {
			var first, second Frame
			if err := decode(b, &first); err != nil {
				if e := agora.AsError(err); e.Code != agora.InvalidRequest || e.Message == "" {
					t.Fatalf("refused with %v", err)
				}
				continue
			}
			if !json.Valid(b) || !utf8.Valid(b) {
				t.Fatalf("took %q", b)
			}
			written := first.Append(nil)
			must(t, decode(written, &second))
			if again := second.Append(nil); !bytes.Equal(written, again) {
				t.Fatalf("written as\n %s, then as\n %s", written, again)
			}
			if a, b := asJSON(t, first.Relay()), asJSON(t, second.Relay()); a != b {
				t.Fatalf("asked for\n %s, then for\n %s", a, b)
			}
		}
	})
}

// FuzzPayload holds that any valid JSON passes byte for byte: as payload and, where it is a string, as chunk.
func FuzzPayload(f *testing.F) {
	for _, v := range load[map[string]any](f, "data") {
		f.Add((*v)["data"].(string))
	}
	for _, p := range []string{`"\ud83d"`, `"\ude00\ud83d"`, `{"\uDBFF":["\udc00"]}`, `"\\ud83d"`, ` null `, `-0.0e+7`, `{"a":1,"a":2}`} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		if !json.Valid([]byte(payload)) || !utf8.ValidString(payload) || nesting(payload) >= (Limits{}).withDefaults().Depth-1 {
			return
		}
		body := strings.Trim(payload, " \t\r\n")
		passes(t, `{"type":"send","to":"a","payload":`+payload+`}`, body, `{"type":"message","from":"b","payload":`+body+`}`)
		if body[0] == '"' {
			passes(t, `{"type":"send_chunk","to":"a","stream_id":"s","chunk":`+payload+`}`, body, `{"type":"message_chunk","from":"b","stream_id":"s","chunk":`+body+`}`)
		}
	})
}

// passes checks that a client's frame asks for a message with that body, which becomes that frame to its receiver, and is read there.
func passes(t *testing.T, sent, body, delivered string) {
	t.Helper()
	var f Frame
	must(t, DecodeRequest([]byte(sent), &f, Limits{}))
	m := f.Relay()
	m.From = "b"
	got := AppendMessage(nil, &m, Delivery{})
	if string(m.Body) != body || string(got) != delivered {
		t.Fatalf("%s has the body %s and is delivered as %s", sent, m.Body, got)
	}
	must(t, DecodeAnswer(got, &f))
	if string(f.Payload)+string(f.Chunk) != body {
		t.Fatalf("%s is read as %s%s", got, f.Payload, f.Chunk)
	}
}

// nesting returns how deep objects and arrays of valid JSON stand in each other.
func nesting(valid string) (deepest int) {
	d := json.NewDecoder(strings.NewReader(valid))
	for depth := 0; ; {
		switch token, err := d.Token(); {
		case err != nil:
			return deepest
		case token == json.Delim('{'), token == json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case token == json.Delim('}'), token == json.Delim(']'):
			depth--
		}
	}
}
