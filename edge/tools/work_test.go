package tools

import (
	"fmt"
	"strings"
	"testing"
)

// hostile are schemas and arguments of which the validator would make a great deal, in numbers that n grows.
func hostile(n int) map[string][2]string {
	defs := func(f string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"d%d":`+f+`,`, i, i+1, i+1)
		}
		return b.String() + fmt.Sprintf(`"d%d":{"type":"null"}`, n)
	}
	items := func(each string, n int) string { return "[" + strings.Repeat(each+",", n-1) + each + "]" }
	var alike []string // their hashes are the same
	for i := range n * 100 {
		at := 1 + i%(n*100)
		s := strings.Repeat("a", n*100+1)
		alike = append(alike, fmt.Sprintf(`["%s","%s"]`, s[:at], s[at:]))
	}
	deep := strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)
	return map[string][2]string{
		"allOf doubles":      {fmt.Sprintf(`{"$defs":{%s},"$ref":"#/$defs/d0"}`, defs(`{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`)), `null`},
		"anyOf doubles":      {fmt.Sprintf(`{"$defs":{%s},"$ref":"#/$defs/d0"}`, defs(`{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`)), `1`},
		"recursion doubles":  {`{"$defs":{"n":{"anyOf":[{"properties":{"a":{"$ref":"#/$defs/n"}},"type":"object"},{"properties":{"a":{"$ref":"#/$defs/n"}},"type":"object"}]}},"$ref":"#/$defs/n"}`, deep},
		"dynamic doubles":    {`{"$dynamicAnchor":"n","type":"object","allOf":[{"properties":{"a":{"$dynamicRef":"#n"}}},{"properties":{"a":{"$dynamicRef":"#n"}}}]}`, deep},
		"many by many":       {`{"items":{"allOf":` + items(`{"minimum":1}`, n*50) + `}}`, items("1", n*5000)},
		"numbers":            {`{"items":{"multipleOf":1e-300,"type":"integer"}}`, items("1e-308", n*5000)},
		"enum of numbers":    {`{"items":{"enum":` + items("1.5e300", n*200) + `}}`, items("1e308", n*5000)},
		"pattern":            {`{"pattern":"(x?){900}y$"}`, `"` + strings.Repeat("x", n*20000) + `"`},
		"patterns of names":  {`{"items":{"patternProperties":{"(x?){900}y$":true}}}`, items(`{"`+strings.Repeat("x", 200)+`":1}`, n*100)},
		"unique":             {`{"uniqueItems":true}`, "[" + strings.Join(alike, ",") + "]"},
		"unevaluated":        {`{"anyOf":` + items(`{"required":["b"]}`, n*50) + `,"unevaluatedProperties":true}`, wide(n * 2000)},
		"names":              {`{"items":{"propertyNames":{"anyOf":` + items(`{"minLength":9}`, n*50) + `}}}`, items(wide(50), n*50)},
		"required":           {`{"items":{"required":` + names(n*100) + `}}`, items("{}", n*5000)},
		"errors":             {`{"items":{"oneOf":` + items(`{"type":"string"}`, n*10) + `}}`, items("1", n*5000)},
		"deep by unevaluted": {`{"$defs":{"n":{"properties":{"a":{"$ref":"#/$defs/n"}},"unevaluatedProperties":{"$ref":"#/$defs/n"}}},"$ref":"#/$defs/n"}`, deep},
	}
}

// wide is an object of n properties.
func wide(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"p%d":1,`, i)
	}
	return "{" + b.String() + `"a":1}`
}

// names is a list of n names.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"n%d",`, i)
	}
	return "[" + b.String() + `"z"]`
}

// TestWorkIsBounded gives the validator what it would never be done with: the test ends.
func TestWorkIsBounded(t *testing.T) {
	for name, c := range hostile(40) {
		s, err := Compile([]byte(c[0]))
		if err != nil {
			continue // which is as good
		}
		if err := s.Check([]byte(c[1])); err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("%s: %v, want it refused as too much work", name, err)
		}
	}
}

// TestWhatIsOrdinaryIsNotTooMuch checks large arguments of a kind that agents do send.
func TestWhatIsOrdinaryIsNotTooMuch(t *testing.T) {
	record := `{"type":"object","required":["id","name"],"properties":{"id":{"type":"integer","minimum":0},"name":{"type":"string","maxLength":100},
		"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true},"kind":{"enum":["a","b","c"]},"at":{"$ref":"#/$defs/at"}}}`
	s, err := Compile([]byte(`{"$defs":{"record":` + record + `,"at":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}}}},
		"type":"object","properties":{"records":{"type":"array","items":{"$ref":"#/$defs/record"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	one := `{"id":12345,"name":"somebody of some name","tags":["a","b","c"],"kind":"b","at":{"x":1.5,"y":-2.25}},`
	all := `{"records":[` + strings.TrimSuffix(strings.Repeat(one, 10000), ",") + `]}` // a megabyte
	if err := s.Check([]byte(all)); err != nil {
		t.Errorf("ten thousand records: %v", err)
	}
}

func BenchmarkCheck(b *testing.B) {
	s, err := Compile([]byte(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"lines":{"type":"array","items":{"type":"integer"}},"mode":{"enum":["r","w"]}}}`))
	if err != nil {
		b.Fatal(err)
	}
	arguments := []byte(`{"path":"docs/readme.md","lines":[1,2,3,4],"mode":"r"}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Check(arguments); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHostile takes as long as the most that a check may.
func BenchmarkHostile(b *testing.B) {
	for name, c := range hostile(12) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if s, err := Compile([]byte(c[0])); err == nil {
					s.Check([]byte(c[1]))
				}
			}
		})
	}
}
