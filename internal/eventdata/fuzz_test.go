package eventdata

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agora-relay/agora/internal/rawjson"
)

// FuzzSign holds that an event has one sender, a time, and everything else unchanged, as it is byte for byte within
// other data.
func FuzzSign(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.Data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		if json.Valid([]byte(data)) && utf8.ValidString(data) && strings.Count(data, "[")+strings.Count(data, "{") < maxDepth-1 {
			within, err := Sign(json.RawMessage(`{"x":`+data+`,"timestamp":0}`), "b", 7)
			if want := `{"from":"b","x":` + data + `,"timestamp":0}`; err != nil || string(within) != want {
				t.Fatalf("within other data it became %s, %v, want %s", within, err, want)
			}
		}
		got, err := Sign(json.RawMessage(data), "agent \"1\"", 7)
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
		again, err := Sign(got, "agent \"1\"", 8)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("made %s of %s, %v", again, got, err)
		}
	})
}

// FuzzSplit holds that pieces are never empty, are text by themselves, and
// together are the whole.
func FuzzSplit(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.Data, v.Threshold)
	}
	f.Fuzz(func(t *testing.T, data string, threshold int) {
		deltas := Split(json.RawMessage(data), threshold)
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
