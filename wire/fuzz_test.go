package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
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

// FuzzPayload holds that any valid JSON passes byte for byte: as payload, as data, and, where it is a string, as chunk.
func FuzzPayload(f *testing.F) {
	for _, v := range load[dataVector](f, "data") {
		f.Add(v.Data)
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
		data, err := EventData(json.RawMessage(`{"x":`+payload+`,"timestamp":0}`), "b", 7)
		if want := `{"from":"b","x":` + payload + `,"timestamp":0}`; err != nil || string(data) != want {
			t.Fatalf("data became %s, %v, want %s", data, err, want)
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

// FuzzEventData holds that an event has one sender, a time, and everything else unchanged.
func FuzzEventData(f *testing.F) {
	for _, v := range load[dataVector](f, "data") {
		f.Add(v.Data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		got, err := EventData(json.RawMessage(data), "agent \"1\"", 7)
		if err != nil {
			return
		}
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("made %q of %q", got, data)
		}
		var old, new map[string]json.RawMessage
		must(t, json.Unmarshal([]byte(data), &old))
		must(t, json.Unmarshal(got, &new))
		if string(new["from"]) != `"agent \"1\""` || new["timestamp"] == nil {
			t.Fatalf("made %s of %s", got, data)
		}
		for key, value := range old {
			if key != "from" && !bytes.Equal(value, new[key]) {
				t.Fatalf("made %s of %s", got, data)
			}
		}
		again, err := EventData(got, "agent \"1\"", 8)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("made %s of %s, %v", again, got, err)
		}
	})
}

// FuzzSplitText holds that pieces are never empty, are text by themselves, and
// together are the whole.
func FuzzSplitText(f *testing.F) {
	for _, v := range load[dataVector](f, "data") {
		f.Add(v.Data, v.Threshold)
	}
	f.Fuzz(func(t *testing.T, data string, threshold int) {
		deltas := SplitText(json.RawMessage(data), threshold)
		if deltas == nil {
			return
		}
		var whole map[string]json.RawMessage
		must(t, json.Unmarshal([]byte(data), &whole))
		var raw, text strings.Builder
		for i, d := range deltas {
			var part map[string]json.RawMessage
			must(t, json.Unmarshal(d, &part))
			piece := string(part["text"])
			if len(piece) <= 2 || !utf8.Valid(d) || len(piece)-2 > max(threshold, 12) {
				t.Fatalf("piece %d of %s at %d is %s", i, data, threshold, piece)
			}
			if i > 0 && len(part) != 1 || i == 0 && len(part) != len(whole) {
				t.Fatalf("delta %d of %s at %d is %s", i, data, threshold, d)
			}
			raw.WriteString(piece[1 : len(piece)-1])
			text.WriteString(rawjson.Unquote(part["text"]))
		}
		if `"`+raw.String()+`"` != string(whole["text"]) || text.String() != rawjson.Unquote(whole["text"]) {
			t.Fatalf("pieces of %s at %d make %s", data, threshold, raw.String())
		}
	})
}
