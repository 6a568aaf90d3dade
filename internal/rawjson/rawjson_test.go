package rawjson

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStringsAreWrittenAsJSON(t *testing.T) {
	for s, want := range map[string]string{
		"":                        `""`,
		"plain é 😀 </script>":     `"plain é 😀 </script>"`,
		"a\"b\\c\n\r\t\x00\x1f":   `"a\"b\\c\n\r\t\u0000\u001f"`,
		"broken \xff\xed\xa0 end": "\"broken \uFFFD\uFFFD\uFFFD end\"",
	} {
		if got := string(AppendString(nil, s)); got != want {
			t.Errorf("AppendString(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestTextIsWrittenAsStringsAre(t *testing.T) {
	for _, s := range []string{"", "token", "a longer text, \"quoted\"\nwith lines", strings.Repeat("中文字", 9), "long, and then broken: \xff", "\x00\x7f"} {
		if got, want := string(AppendText(nil, []byte(s))), string(AppendString(nil, s)); got != want {
			t.Errorf("AppendText(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestIntegersHaveOneSpelling(t *testing.T) {
	for raw, want := range map[string]bool{
		"1": true, "9": true, "10": false, "0": false, "-1": false, "1.0": false, "1e0": false, `"1"`: false, "true": false, "10000000000000001": false,
	} {
		if n, ok := Integer([]byte(raw), 1, 10); ok != want || !ok && n != 0 {
			t.Errorf("Integer(%s) = %d, %v, want %v", raw, n, ok, want)
		}
	}
}

func TestNestingIsBounded(t *testing.T) {
	for b, want := range map[string]bool{
		`{"a":[[1]]}`: true, `{"a":[[{}]]}`: false, `{"a":{"b":{}},"c":[{}]}`: true, `{"a":` + strings.Repeat("[", 1<<20): false,
	} {
		o := NewObject([]byte(b), 3)
		for o.Next() {
		}
		if got := o.End(); got != want {
			t.Errorf("%.20s passes: %v, want %v", b, got, want)
		}
	}
}

func TestAWalkEntersAValueAndGoesOnBehindIt(t *testing.T) {
	var keys []string
	o := NewObject([]byte(` { "a" : 1 , "b" : { "c" : [2] , "\u0064" : {} } , "e" : "f" } `), 3)
	for o.NextKey() {
		keys = append(keys, string(o.Name()))
		in, ok := o.Enter()
		if !ok {
			o.Pass()
			continue
		}
		for in.Next() {
			keys = append(keys, string(in.Name())+"="+string(in.Val))
		}
		o.Leave(&in)
		keys = append(keys, string(o.Val))
	}
	if got, want := strings.Join(keys, ";"), `a;b;c=[2];d={};{ "c" : [2] , "\u0064" : {} };e`; got != want || !o.End() {
		t.Errorf("walked over\n %s, want\n %s", got, want)
	}
}

// FuzzValue holds that what passes is what encoding/json takes, and that keys and strings are undone as it does.
func FuzzValue(f *testing.F) {
	for _, s := range []string{``, `{}`, ` {"a":[1,-0.5e+3,"\ud83d\ude00",null,true,false]} `, `{"a":1,}`, `{"a" 1}`, `{"\ud83d":"\u0000"}`, `{"a":01}`, "{\"\x00\":1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		o := NewObject([]byte(s), 10000)
		last := map[string]string{}
		for o.Next() {
			last[string(o.Name())] = string(o.Val)
		}
		var want map[string]json.RawMessage
		ok := json.Unmarshal([]byte(s), &want) == nil && want != nil
		if o.End() != ok {
			t.Fatalf("%q passes: %v, want %v", s, !ok, ok)
		}
		if !ok {
			return
		}
		if len(last) != len(want) {
			t.Fatalf("%s has the keys %v, want %v", s, last, want)
		}
		for k, v := range want {
			if last[k] != string(v) {
				t.Fatalf("%s has %q at %q, want %q", s, last[k], k, v)
			}
		}
	})
}

// FuzzString holds that any text comes back from what is written of it, whether it is a string or bytes.
func FuzzString(f *testing.F) {
	f.Add("a\"\\\n\x01é😀")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		b := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(b, &back); err != nil || back != s {
			t.Fatalf("%q became %s: %v", s, b, err)
		}
		if text := AppendText(nil, []byte(s)); string(text) != string(b) {
			t.Fatalf("%q became %s as bytes, and %s as a string", s, text, b)
		}
	})
}
