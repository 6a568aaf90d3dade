package tools

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/agora-relay/agora"
)

// FuzzSchema compiles any bytes, and checks the schema's own bytes against it.
func FuzzSchema(f *testing.F) {
	for _, c := range hostile(3) {
		f.Add([]byte(c[0]))
	}
	for _, s := range []string{`{}`, `{"$ref":"#"}`, `{"$ref":"file:///etc/passwd"}`, `{"minimum":1e999999999}`, `{"$id":"a","$defs":{"b":{"$id":"a"}}}`, `{"pattern":"("}`, `{"$schema":"x","$vocabulary":{"y":true}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Compile(b)
		if err != nil {
			if e := agora.AsError(err); e.Code != agora.InvalidRequest || len(e.Message) > 2000 {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !json.Valid(b) {
			t.Fatal("what is no JSON is a schema")
		}
		for _, v := range [][]byte{b, nil, []byte(`[1,{"a":["x",null]}]`), []byte(`{"path":"a"}`)} {
			s.Check(v)
			New(Config{}).CheckPaths([]string{"/work"}, b, v, false)
		}
	})
}

// FuzzArguments checks any bytes against schemas that look at everything.
func FuzzArguments(f *testing.F) {
	var all []*Schema
	var raw [][]byte
	for _, s := range []string{
		`{"type":"object","properties":{"n":{"type":"integer","minimum":-1,"multipleOf":0.01},"path":{"format":"path","pattern":"^a"}},"additionalProperties":{"$ref":"#"}}`,
		`{"type":["array","object","number"],"uniqueItems":true,"items":{"$ref":"#"},"unevaluatedProperties":{"enum":[1,"a",{"b":[2]}]},"propertyNames":{"maxLength":3}}`,
	} {
		schema, err := Compile([]byte(s))
		if err != nil {
			f.Fatal(err)
		}
		all, raw = append(all, schema), append(raw, []byte(s))
	}
	for _, c := range hostile(2) {
		f.Add([]byte(c[1][:min(len(c[1]), 2000)]))
	}
	for _, s := range []string{`{"n":1e308}`, `{"n":-0.0E-309}`, `{"n":1e999999999}`, `{"path":"\ud83d"}`, `{"a":1,"a":2}`, `[1,1.0]`, "\xff", `{"path":"..\\.."}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for i, s := range all {
			first := s.Check(b)
			if again := s.Check(b); (first == nil) != (again == nil) || first != nil && first.Error() != again.Error() {
				t.Fatalf("once %v, and then %v", first, again)
			}
			if first == nil && !json.Valid(b) {
				t.Fatal("what is no JSON fits")
			}
			New(Config{}).CheckPaths([]string{os.TempDir()}, raw[i], b, true)
		}
	})
}
