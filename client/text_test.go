package client

import (
	"encoding/json"
	"testing"
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
	got := withText(json.RawMessage(`{ "from":"a", "text" : "first" , "n":1.0}`), "a\"b")
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

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\n\x01é😀")
	f.Fuzz(func(t *testing.T, s string) {
		want, _ := json.Marshal(s)
		var back string
		if json.Unmarshal(want, &back) != nil || back != s {
			return // not UTF-8
		}
		if json.Unmarshal(appendString(nil, s), &back) != nil || back != s || unquote(appendString(nil, s)) != s {
			t.Fatalf("%q became %s", s, appendString(nil, s))
		}
	})
}
