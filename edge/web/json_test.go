package web

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

type wanted struct {
	Text  string          `json:"text"`
	Count int             `json:"count,omitempty"`
	Any   json.RawMessage `json:"any"`
}

func TestWhatABodySaysIsTakenInOneWayOrNotAtAll(t *testing.T) {
	many := `{"any":{`
	for k := range 40 {
		many += `"` + strings.Repeat("k", k+1) + `":0,`
	}
	for _, c := range []struct{ body, wrong string }{
		{`{"text":"a","count":3,"any":{"x":[{"y":1},{"y":2}]}}`, ""},
		{" \r\n\t{}", ""},
		{`{"any":[{"a":"a"},"a","a",{"a":{"a":1}}]}`, ""},
		{many + `"z":1}}`, ""},
		{many + `"` + strings.Repeat("k", 39) + `":1}}`, `stands twice in one object`},
		{`{"text":"a","text":"b"}`, `"text" stands twice in one object`},
		{`{"text":"a","te\u0078t":"b"}`, `"text" stands twice in one object`},
		{`{"any":{"x":1,"y":2,"x":3}}`, `"x" stands twice in one object`},
		{`{"any":[[{"x":1,"x":3}]]}`, `"x" stands twice in one object`},
		{`{"TEXT":"a"}`, `"TEXT" is no field of this request`},
		{`{"txet":"a"}`, `"txet" is no field of this request`},
		{`{"text":3}`, `"text" can't be a number`},
		{`{"count":"3"}`, `"count" can't be a string`},
		{`[]`, `the body must be a JSON object`},
		{`null`, `the body must be a JSON object`},
		{`{} {}`, `the body is no JSON at byte 4`},
		{`{"text":"` + "\xff" + `"}`, `the body is no UTF-8 at byte 9`},
		{`{"any":` + strings.Repeat("[", 8) + strings.Repeat("]", 8) + `}`, `the body is nested more than 8 deep`},
		{`{"any":` + strings.Repeat("[", 7) + strings.Repeat("]", 7) + `}`, ``},
		{`{"any":"` + strings.Repeat("[", 100) + `\"["}`, ``},
	} {
		var w wanted
		err := checkJSON([]byte(c.body), 8)
		if err == nil {
			err = Decode([]byte(c.body), &w)
		}
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", c.body, err, c.wrong)
		}
	}
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{"text":"a","any":{"b":[1,2,{"c":null}]}}`, `{"a":1,"a":2}`, `[[[[[]]]]]`, `"\ud800"`, `{"\ud800":1,"\ud801":2}`, "{\"a\":\"\xff\"}", ``, `1e999`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const depth = 8
		before := bytes.Clone(b)
		err := checkJSON(b, depth)
		if !bytes.Equal(b, before) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("what is wrong is told in bytes that are no text: %q", err)
			}
			return
		}
		if !json.Valid(b) || !utf8.Valid(b) {
			t.Fatalf("%q is taken for JSON", b)
		}
		var w wanted
		if Decode(b, &w) != nil {
			return
		}
		var again wanted
		said, err := json.Marshal(w)
		if err != nil || Decode(said, &again) != nil {
			t.Fatalf("%q was read as %+v, which can't be read", b, w)
		}
	})
}
