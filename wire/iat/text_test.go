package iat

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func TestTextBodyIsTheTextWhereThatSaysHowItWasSpelt(t *testing.T) {
	for payload, want := range map[string]string{
		`{"text":""}`:                     "=",
		`{"text":"words"}`:                "=words",
		`{"text":"☃ \"x\" \\ \n\r\t"}`:    "=☃ \"x\" \\ \n\r\t",
		`{"text":"\\"}`:                   "=\\",
		`{"text":"a\/b"}`:                 "",
		`{"text":"\u0041"}`:               "",
		`{"text":"\ud83d"}`:               "",
		`{"text":"a"} `:                   "",
		`{ "text":"a"}`:                   "",
		`{"text": "a"}`:                   "",
		`{"text":"a","b":"c"}`:            "",
		`{"text":"a","text":"b"}`:         "",
		`{"text":"a\"","b":"\"c"}`:        "",
		`{"text":"a" }`:                   "",
		`{"text":1}`:                      "",
		`{"t\u0065xt":"a"}`:               "",
		`"text"`:                          "",
		`{}`:                              "",
		``:                                "",
		`{"text":"a","b":{"c":"d"}}`:      "",
		`{"text":"a","b":["{\"text\":"]}`: "",
	} {
		text, ok := TextBody(json.RawMessage(payload))
		if got := "=" + string(text); ok && got != want || ok != (want != "") || ok && text == nil {
			t.Errorf("TextBody(%s) = %q, %v, want %q", payload, text, ok, want)
		}
	}
}

// FuzzTextBody holds that a payload which becomes text comes back byte for byte, and that every text that is spelt for an agent is
// read as that text again.
func FuzzTextBody(f *testing.F) {
	for _, s := range []string{`a`, `a"}`, `\"`, `","b":"`, `\\`, "☃\x7f", `{"text":"a"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		written := appendTextBody(nil, []byte(s))
		if text, ok := TextBody(written); ok && string(text) != s {
			t.Fatalf("%s is read as %q", written, text)
		}
		payload := json.RawMessage(`{"text":"` + s + `"}`)
		if !json.Valid(payload) {
			return
		}
		if text, ok := TextBody(payload); ok && string(appendTextBody(nil, text)) != string(payload) {
			t.Fatalf("%s came back as %s", payload, appendTextBody(nil, text))
		}
	})
}
