package tools

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refused returns the message of an INVALID_REQUEST; "" for no error.
func refused(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*agora.Error](err)
	if !ok || e.Code != agora.InvalidRequest {
		t.Fatalf("error %v, want an %s", err, agora.InvalidRequest)
	}
	return e.Message
}

var schemas = []struct{ schema, want string }{
	{`{}`, ""},
	{`true`, ""},
	{`{"type":"object","properties":{"path":{"type":"string","format":"nonsense"}},"required":["path"]}`, ""},
	{`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, ""},
	{`{"$schema":"file:///etc/passwd","type":"object"}`, ""},
	{`{"$defs":{"a":{"$id":"http://x/y","$schema":"http://nowhere/z","type":"string"}},"$ref":"#/$defs/a"}`, ""},
	{`{"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`, ""},
	{`{"$id":"https://example.com/tool","$defs":{"a":{"$anchor":"here"}},"$ref":"https://example.com/tool#here"}`, ""},
	{`{"$dynamicAnchor":"node","properties":{"kids":{"items":{"$dynamicRef":"#node"}}}}`, ""},
	{`{"properties":{"$schema":{"type":"string"},"pattern":{"const":{"pattern":"("}}}}`, ""},
	{``, "schema: not valid JSON"},
	{`5`, "schema: must be an object, true or false"},
	{`{"type":"strin"}`, "schema at /type: is none of the 7 values that it may be"},
	{`{"properties":{"path":{"type":1}}}`, "schema at /properties/path/type: "},
	{`{"properties":{"a/b":{"minimum":"1"}}}`, "schema at /properties/a~1b/minimum: got string, want number"},
	{`{"multipleOf":0}`, "schema at /multipleOf: is not more than 0"},
	{`{"minimum":1e309}`, "schema at /minimum: the exponent of this number is beyond ±308"},
	{`{"minimum":1e999999999}`, "schema at /minimum: the exponent"},
	{`{"const":[0,1e-400]}`, "schema at /const/1: the exponent"},
	{`{"maximum":` + strings.Repeat("9", 900) + `}`, "schema at /maximum: this number has more than 800 digits"},
	{`{"minLength":1e300}`, "schema at /minLength: larger than any value"},
	{`{"type":"object","type":"string"}`, "schema at /type: this name stands twice"},
	{`{"properties":{"a":{"pattern":"(?!x)"}}}`, "schema at /properties/a/pattern: not a regular expression"},
	{`{"patternProperties":{"((a{100}){100}){100}":{}}}`, "schema at /patternProperties/((a{100}){100}){100}: not a regular"},
	{`{"pattern":"` + strings.Repeat("x", 1025) + `"}`, "schema at /pattern: not a regular"},
	{`{"$ref":"file:///etc/passwd"}`, "schema at /$ref: refers to something outside"},
	{`{"properties":{"a":{"$ref":"http://127.0.0.1:1/x#/y"}}}`, "schema at /properties/a/$ref: refers to something outside"},
	{`{"$ref":"other.json"}`, "schema at /$ref: refers to something outside"},
	{`{"allOf":[{"$ref":"https://json-schema.org/draft/2020-12/schema"}]}`, "schema at /allOf/0: refers to something outside"},
	{`{"$ref":"#/$defs/none"}`, "schema at /$ref: refers to a place that is not in"},
	{`{"$ref":"#none"}`, "schema at /$ref: refers to a place that is not in"},
	{`{"$ref":"#"}`, "refers to itself without end"},
	{`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`, "refers to itself without end"},
	{`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, "refers to itself without end"},
	{`{"$recursiveRef":"#"}`, "refers to itself without end"},
	{`{"$ref":"%zz"}`, "schema at /$ref: "},
	{`{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, "schema: deeper than 32"},
	{`{"title":"` + strings.Repeat("x", MaxSchema) + `"}`, "schema: larger than 65536 bytes"},
	{`{"allOf":[` + strings.Repeat("true,", 3000) + `true]}`, "more than 2048 subschemas"},
	{`{"allOf":[` + strings.Repeat(`{"$ref":"#/$defs/a"},`, 600) + `true],"$defs":{"a":true}}`, "more than 512 references"},
	{`{"properties":{"` + strings.Repeat("k", 30000) + `":{"allOf":[` + strings.Repeat("true,", 200) + `true]}}}`, "names are too long"},
	{chain(100), "more than 64 schemas apply"},
}

func TestASchemaIsCheckedAndItsErrorNamesThePlace(t *testing.T) {
	for _, c := range schemas {
		_, err := Compile([]byte(c.schema))
		got := refused(t, err)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%.90s:\n got %q\nwant %q", c.schema, got, c.want)
		}
	}
}

// chain is a schema of n that refer to the next.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	return fmt.Sprintf(`{"$defs":{%s"d%d":true},"$ref":"#/$defs/d0"}`, &b, n)
}

var argued = []struct{ arguments, path, want string }{
	{`{"path":"x"}`, "", ""},
	{`{"path":"x","n":2.0,"list":[1,2,{"deep":1.0}],"of":{"x":null},"kind":"a","re":"aa"}`, "", ""},
	{``, "", "arguments are not valid JSON"},
	{`[]`, "", "got array, want object (schema /type)"},
	{`{}`, "", "lacks 'path' (schema /required)"},
	{`{"path":1}`, "/path", "at /path: got number, want string (schema /properties/path/type)"},
	{`{"path":"x","secret":1}`, "", "has 'secret', which it may not have (schema /additionalProperties)"},
	{`{"path":"x","n":3}`, "/n", "at /n: is no multiple of 2 (schema /properties/n/multipleOf)"},
	{`{"path":"x","n":0}`, "/n", "at /n: is less than 1 (schema /properties/n/minimum)"},
	{`{"path":"x","n":1e999999999}`, "/n", "at /n: the exponent of this number is beyond ±308"},
	{`{"path":"x","n":1e400000000000000000000}`, "/n", "at /n: the exponent"},
	{`{"path":"x","n":` + strings.Repeat("1", 801) + `}`, "/n", "at /n: this number has more than 800 digits"},
	{`{"path":"x","path":"x"}`, "/path", "at /path: this name stands twice"},
	{`{"path":"x","list":[1,1.0]}`, "/list", "at /list: items 0 and 1 are equal (schema /properties/list/uniqueItems)"},
	{`{"path":"x","list":["s"]}`, "/list/0", "at /list/0: got string, want number or object (schema /$defs/item/type)"},
	{`{"path":5,"list":[{"deep":2}]}`, "/list/0/deep", "at /list/0/deep: is not the value that it must be (schema /$defs/item/properties/deep/const)"},
	{`{"path":"x","of":{"x":"secret"}}`, "/of/x", "at /of/x: got string, want null (schema /properties/of/anyOf/1/properties/x/type)"},
	{`{"path":"x","kind":"secret"}`, "/kind", "at /kind: is none of the 2 values that it may be (schema /properties/kind/enum)"},
	{`{"path":"x","re":"secret"}`, "/re", "at /re: does not match the pattern (schema /properties/re/pattern)"},
	{`{"path":"x","` + strings.Repeat("[", 3) + `":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, "", "arguments are deeper than 256"},
	{"{\"path\":\"\xff\"}", "", "arguments are not valid UTF-8"},
}

func TestArgumentsAreCheckedAndTheErrorNamesBothPlaces(t *testing.T) {
	schema := `{"type":"object","required":["path"],"additionalProperties":false,"propertyNames":{"maxLength":9},"properties":{
		"path":{"type":"string","minLength":1,"format":"date"},"n":{"type":"integer","minimum":1,"multipleOf":2},
		"list":{"type":"array","maxItems":3,"uniqueItems":true,"items":{"$ref":"#/$defs/item"}},
		"of":{"anyOf":[{"type":"string"},{"type":"object","properties":{"x":{"type":"null"}}}]},
		"kind":{"enum":["a","b"]}, "re":{"pattern":"^a+$"}},
		"$defs":{"item":{"type":["number","object"],"properties":{"deep":{"const":1}}}}}`
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range argued {
		for range 5 { // the library goes through names in another order each time
			err := s.Check([]byte(c.arguments))
			if got := refused(t, err); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%.90s:\n got %q\nwant %q", c.arguments, got, c.want)
			}
			if r, ok := errors.AsType[*Refusal](err); ok && r.Path != c.path {
				t.Errorf("%.90s: path %q, want %q", c.arguments, r.Path, c.path)
			}
		}
	}
	if got := refused(t, s.Check(nil)); got != "lacks 'path' (schema /required)" {
		t.Errorf("no arguments: %q", got)
	}
	if got := refused(t, s.Check([]byte(`{"path":"x","longer than nine":1}`))); strings.Contains(got, "secret") || got == "" {
		t.Errorf("a long name: %q", got)
	}
}
