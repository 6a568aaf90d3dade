package client

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMemberFindsTopLevelKeysAlone(t *testing.T) {
	cases := []struct{ object, key, want string }{
		{`{"a":1}`, "a", "1"},
		{` { "x" : {"a":2} , "a" : "b\"}" } `, "a", `"b\"}"`},
		{`{"x":[{"a":1},"]"],"a":[1, 2]}`, "a", "[1, 2]"},
		{`{"\u0061":true}`, "a", "true"},
		{`{"A":1}`, "a", ""},
		{`{}`, "a", ""},
		{`[{"a":1}]`, "a", ""},
		{`"a"`, "a", ""},
		{``, "a", ""},
		{`{"b":-1.5e3,"a":null}`, "a", "null"},
	}
	for _, tc := range cases {
		got, ok := member(json.RawMessage(tc.object), tc.key)
		if string(got) != tc.want || ok != (tc.want != "") {
			t.Errorf("member(%s, %s) = %q, %v, want %q", tc.object, tc.key, got, ok, tc.want)
		}
	}
}

func TestWithTextKeepsEveryOtherByte(t *testing.T) {
	got := withText(json.RawMessage(`{ "from":"a", "text" : "first" , "n":1.0}`), []byte(`"a\"b"`))
	if want := `{ "from":"a", "text" : "a\"b" , "n":1.0}`; string(got) != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func FuzzMember(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[{}]}`), "b")
	f.Fuzz(func(t *testing.T, object []byte, key string) {
		got, ok := member(object, key)
		var all map[string]json.RawMessage
		if json.Unmarshal(object, &all) != nil || all == nil {
			return // only valid JSON comes here; anything else must not panic
		}
		if _, there := all[key]; ok && (!there || !json.Valid(got)) {
			t.Fatalf("member(%s, %q) = %q", object, key, got)
		}
	})
}

// FuzzJoiner holds that text comes out the same however it was cut into raw pieces, but between the halves of one
// escape.
func FuzzJoiner(f *testing.F) {
	f.Add(`a\ud83d\ude00\\ud83d\ude00\ud83d`, uint8(6))
	f.Add(`\ud83d`, uint8(1))
	f.Fuzz(func(t *testing.T, raw string, size uint8) {
		if !utf8.ValidString(raw) || !json.Valid([]byte(`"`+raw+`"`)) {
			return
		}
		var j joiner
		got := ""
		for _, piece := range pieces(raw, int(size)) {
			got += j.add(piece)
		}
		if got += j.end(); got != unescape(raw) {
			t.Fatalf("%s in pieces of %d is %q, want %q", raw, size, got, unescape(raw))
		}
	})
}

// pieces cuts raw text into pieces of some size, and never inside an escape or a rune.
func pieces(raw string, size int) (all []string) {
	from := 0
	for at := 0; at < len(raw); {
		switch {
		case strings.HasPrefix(raw[at:], `\u`):
			at += 6
		case raw[at] == '\\':
			at += 2
		default:
			_, n := utf8.DecodeRuneInString(raw[at:])
			at += n
		}
		if at-from >= size {
			all, from = append(all, raw[from:at]), at
		}
	}
	return append(all, raw[from:])
}
