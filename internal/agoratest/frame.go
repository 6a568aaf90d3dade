package agoratest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Any and None stand in a pattern for a value that is there, whatever it is,
// and for a field that is absent.
const (
	Any  = `"<any>"`
	None = `"<none>"`
)

// Frame is a frame as it came, byte for byte.
type Frame string

// Raw returns the value of a field as it was written; empty when it is absent.
func (f Frame) Raw(field string) string { return f.fields().Raw(field) }

// Text returns a string field, unquoted; empty when it is absent or no string.
func (f Frame) Text(field string) string { return f.fields().Text(field) }

// Uint returns a number field; 0 when it is absent or no whole number.
func (f Frame) Uint(field string) uint64 { return f.fields().Uint(field) }

// Seq returns the frame's position.
func (f Frame) Seq() uint64 { return f.fields().Seq() }

// Type returns the frame's discriminator.
func (f Frame) Type() string { return f.fields().Type() }

// Has reports whether a field is there.
func (f Frame) Has(field string) bool { return f.fields().Has(field) }

// fields takes the frame apart, once for who asks for several of its fields: under the race detector that is what
// an agent of a test spends most of its time with.
func (f Frame) fields() fields {
	var all fields
	_ = json.Unmarshal([]byte(f), &all) // no object: no fields
	return all
}

// fields are those of a frame, with the methods that it has for them.
type fields map[string]json.RawMessage

func (f fields) Raw(field string) string { return string(f[field]) }

func (f fields) Text(field string) (s string) {
	raw := f[field]
	if n := len(raw); n > 1 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : n-1])
	}
	_ = json.Unmarshal(raw, &s) // no string: empty
	return s
}

func (f fields) Uint(field string) uint64 {
	n, err := strconv.ParseUint(string(f[field]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (f fields) Seq() uint64 { return f.Uint("seq") }

func (f fields) Type() string { return f.Text("type") }

func (f fields) Has(field string) bool { return f.Raw(field) != "" }

// Match returns what keeps f from having every field of the pattern with its
// value, whatever else it has; empty when it matches.
func (f Frame) Match(pattern string) string { return diff([]byte(pattern), []byte(f), false, true) }

// MatchText is like Match, but the pattern's fields must come first and in its
// order, also inside of objects: so the examples of a protocol are compared,
// whose extensions follow them.
func (f Frame) MatchText(pattern string) string { return diff([]byte(pattern), []byte(f), true, true) }

// pair is a member of an object.
type pair struct {
	key string
	val json.RawMessage
}

// members returns the members of an object in their order; nil when b is no object.
func members(b []byte) []pair {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var out []pair
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var p pair
		p.key, _ = key.(string)
		if d.Decode(&p.val) != nil {
			return nil
		}
		out = append(out, p)
	}
	return out
}

// diff compares a value with a pattern; top says that it may have more fields.
func diff(want, got json.RawMessage, ordered, top bool) string {
	want, got = bytes.TrimSpace(want), bytes.TrimSpace(got)
	switch {
	case string(want) == Any:
		return ""
	case len(want) == 0 || len(got) == 0:
		return fmt.Sprintf("got %s, want %s", got, want)
	case want[0] == '{' && got[0] == '{':
		return diffObjects(members(want), members(got), ordered, top)
	case want[0] == '[' && got[0] == '[':
		return diffLists(want, got, ordered)
	case want[0] == '"' && got[0] == '"':
		var w, g string
		if json.Unmarshal(want, &w) != nil || json.Unmarshal(got, &g) != nil || w != g {
			return fmt.Sprintf("got %s, want %s", got, want)
		}
		return ""
	case !bytes.Equal(want, got):
		return fmt.Sprintf("got %s, want %s", got, want)
	}
	return ""
}

func diffObjects(want, got []pair, ordered, top bool) string {
	if !top && len(want) != len(got) {
		return fmt.Sprintf("has %d fields, want %d", len(got), len(want))
	}
	i := -1 // among those that are to be there
	for _, w := range want {
		if string(w.val) != None {
			i++
		}
		at := slices.IndexFunc(got, func(g pair) bool { return g.key == w.key })
		switch {
		case string(w.val) == None && at >= 0:
			return fmt.Sprintf("%s is there: %s", w.key, got[at].val)
		case string(w.val) == None:
			continue
		case at < 0:
			return w.key + " is missing"
		case ordered && at != i:
			return fmt.Sprintf("%s is field %d, want %d", w.key, at, i)
		}
		if d := diff(w.val, got[at].val, ordered, false); d != "" {
			return w.key + ": " + d
		}
	}
	return ""
}

func diffLists(want, got json.RawMessage, ordered bool) string {
	var w, g []json.RawMessage
	if json.Unmarshal(want, &w) != nil || json.Unmarshal(got, &g) != nil || len(w) != len(g) {
		return fmt.Sprintf("got %s, want %s", got, want)
	}
	for i := range w {
		if d := diff(w[i], g[i], ordered, false); d != "" {
			return "[" + strconv.Itoa(i) + "]: " + d
		}
	}
	return ""
}

// Quote returns s as a JSON string.
func Quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always marshals
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b))
}
