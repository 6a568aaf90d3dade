package p2p

import (
	"encoding/json"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// piecewise is a stream that comes in pieces of random length.
type piecewise struct {
	t    *rapid.T
	rest string
}

func (p *piecewise) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), rapid.IntRange(1, 60).Draw(p.t, "piece"))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

var spellings = rapid.SampledFrom([]string{`null`, `true`, `0`, `-1.50e+3`, `""`, `"a\"}"`, `"\ud83d"`, `"\u00e9é"`, `{}`, `[]`, `[ 1 ,{"a" :"]"}]`, `{"a":{"a":1},"b" : [[]] }`})

func requests(t *rapid.T) Request {
	r := Request{Method: rapid.StringMatching(`[A-Z]{1,16}`).Draw(t, "method"), Path: "/" + strings.TrimLeft(rapid.String().Draw(t, "path"), "/")}
	r.Path = strings.ToValidUTF8(r.Path, "")
	if rapid.Bool().Draw(t, "has params") {
		r.Params = json.RawMessage(`{ "x":` + spellings.Draw(t, "param") + ` }`)
	}
	if input := spellings.Draw(t, "input"); input != "null" {
		r.Input = json.RawMessage(input)
	}
	return r
}

func TestARequestIsThereAndBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := requests(t)
		got, err := Read(&piecewise{t, string(r.Append(nil)) + rapid.StringMatching(`[ \n]{0,3}`).Draw(t, "behind")}, 0)
		if err != nil || got.Method != r.Method || got.Path != r.Path || string(got.Params) != string(r.Params) || string(got.Input) != string(r.Input) {
			t.Fatalf("%+v comes back as %+v, %v", r, got, err)
		}
		if r.Params == nil {
			r.Params = json.RawMessage("{}")
		}
		got, err = FromPayload(r.AppendPayload(nil, rapid.String().Draw(t, "id")))
		if err != nil || got.Method != r.Method || got.Path != r.Path || string(got.Params) != string(r.Params) || string(got.Input) != string(r.Input) {
			t.Fatalf("%+v is told, and comes back as %+v, %v", r, got, err)
		}
	})
}

// values are texts that may fill a parameter.
var values = rapid.StringMatching(`[a-zA-Z0-9 é😀%?#&=+:@;"'{}<>,~._-]{1,12}`).Filter(func(s string) bool { return !isDots(s) && !hasEscape(s) })

func TestAFilledPathHasTheValuesAndPassesAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var segments, want []string
		params := map[string]string{}
		for i := range rapid.IntRange(1, 5).Draw(t, "segments") {
			if rapid.Bool().Draw(t, "text") {
				s := rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "segment")
				segments, want = append(segments, s), append(want, s)
				continue
			}
			name, value := "p"+string(rune('a'+i)), values.Draw(t, "value")
			params[name] = value
			segments, want = append(segments, "{"+name+"}"), append(want, value)
		}
		skill := "/" + strings.Join(segments, "/")
		g, err := NewGuard([]Skill{{Path: skill}})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.Check(&Request{Method: "PUT", Path: skill, Params: raw})
		if err != nil {
			t.Fatalf("%s with %s: %v", skill, raw, err)
		}
		var seen []string
		for s := range strings.SplitSeq(got.Path[1:], "/") {
			text, err := url.PathUnescape(s)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, text)
		}
		if !slices.Equal(seen, want) {
			t.Fatalf("%s with %s is %q, want %q", skill, raw, seen, want)
		}
		if again, err := g.Check(&Request{Method: "PUT", Path: got.Path}); err != nil || again != got {
			t.Fatalf("%s is %v, %v", got.Path, again, err)
		}
		for name := range maps.Keys(params) {
			delete(params, name)
			raw, _ := json.Marshal(params)
			if _, err := g.Check(&Request{Method: "PUT", Path: skill, Params: raw}); FaultOf(err) == nil || FaultOf(err).Code != 400 {
				t.Fatalf("without %s: %v", name, err)
			}
			break
		}
	})
}
