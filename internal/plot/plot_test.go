package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// parse reads a document to its end, and returns how often each element is in it, and all its text.
func parse(t *testing.T, doc string) (elements map[string]int, text string) {
	t.Helper()
	elements = map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(doc)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, text
		}
		if err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		switch e := token.(type) {
		case xml.StartElement:
			elements[e.Name.Local]++
		case xml.CharData:
			text += string(e)
		}
	}
}

func TestAChartIsXMLWithItsLinesAndNames(t *testing.T) {
	c := Chart{Title: `a < b & "c"`, X: "offered/s", Y: "ms", Lines: []Line{
		{"p50", []Point{{1000, 0.4}, {5000, 0.5}, {10000, 0.9}}},
		{"p99", []Point{{1000, 2}, {5000, 0}, {10000, 900}}}, // one can't be drawn
	}}
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	elements, text := parse(t, b.String())
	if elements["svg"] != 1 || elements["polyline"] != 2 || elements["circle"] != 5 {
		t.Errorf("elements are %v", elements)
	}
	for _, want := range []string{`a < b & "c"`, "offered/s", "p50", "p99", "1k", "10k", "100"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Errorf("not all are numbers: %s", b.String())
	}
}

func TestAChartOfNothingOrOnePointIsXML(t *testing.T) {
	for _, c := range []Chart{{}, {Lines: []Line{{"one", []Point{{10, 10}}}}}} {
		var b strings.Builder
		if err := c.Write(&b); err != nil {
			t.Fatal(err)
		}
		if parse(t, b.String()); strings.Contains(b.String(), "NaN") {
			t.Errorf("not all are numbers: %s", b.String())
		}
	}
}
