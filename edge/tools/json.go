package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agora-relay/agora"
)

// Bounds of numbers. The validator computes with exact fractions: what a float can't hold makes it work for hours, or
// panic.
const (
	maxExponent = 308
	maxDigits   = 800 // a float spelled exactly has fewer
)

// maxDepth is how deep arguments may be nested.
const maxDepth = 256

// Refusal says why a tool is not called, or not declared.
type Refusal struct {
	Err  *agora.Error
	Path string // JSON pointer to the place; "" for the whole
}

// Error returns what the error says, for a log.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the error as an agent may see it.
func (r *Refusal) Unwrap() error { return r.Err }

// refuse returns a Refusal whose sentence begins with its place.
func refuse(code agora.Code, path, format string, args ...any) *Refusal {
	what := fmt.Sprintf(format, args...)
	if path != "" {
		what = "at " + clip(path) + ": " + what
	}
	return &Refusal{agora.Errorf(code, "%s", what), path}
}

// clipped is how many runes of a name stand in a sentence.
const clipped = 128

// clip returns the beginning of a name, printable.
func clip(s string) string {
	short := s
	for i, n := 0, 0; i < len(s); n++ {
		if n == clipped {
			short = s[:i] + "…"
			break
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, short)
}

// pointer escapes a name as a token of a JSON pointer, behind its slash.
func pointer(at, name string) string {
	if strings.ContainsAny(name, "~/") {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	}
	return at + "/" + name
}

// parse returns JSON as the validator takes it: its numbers are [json.Number]. What is no JSON, nested deeper than
// most, has a name twice in one object or a number beyond bounds is refused.
func parse(b []byte, most int) (any, *Refusal) {
	switch {
	case !utf8.Valid(b):
		return nil, refuse(agora.InvalidRequest, "", "not valid UTF-8")
	case nesting(b) > most: // before it is parsed
		return nil, refuse(agora.InvalidRequest, "", "deeper than %d", most)
	case !json.Valid(b):
		return nil, refuse(agora.InvalidRequest, "", "not valid JSON")
	}
	p := parser{b: b}
	v := p.value()
	if p.err != "" {
		return nil, refuse(agora.InvalidRequest, p.place(), "%s", p.err)
	}
	return v, nil
}

// nesting returns how deep objects and lists are nested.
func nesting(b []byte) (most int) {
	now, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// parser reads JSON that is known to be valid.
type parser struct {
	b   []byte
	i   int
	at  []string // names and indexes that lead to where it is
	err string   // why it has stopped, at the place at
}

// place returns where the parser has stopped.
func (p *parser) place() (s string) {
	for _, name := range p.at {
		s = pointer(s, name)
	}
	return s
}

// space passes over white space and returns what comes.
func (p *parser) space() byte {
	for p.b[p.i] == ' ' || p.b[p.i] == '\n' || p.b[p.i] == '\t' || p.b[p.i] == '\r' {
		p.i++
	}
	return p.b[p.i]
}

func (p *parser) value() any {
	switch p.space() {
	case '{':
		return p.object()
	case '[':
		return p.list()
	case '"':
		return p.text()
	case 't':
		p.i += len("true")
		return true
	case 'f':
		p.i += len("false")
		return false
	case 'n':
		p.i += len("null")
		return nil
	}
	return p.number()
}

func (p *parser) object() any {
	o := map[string]any{}
	for p.i++; p.err == "" && p.space() != '}'; {
		name := p.text()
		p.space() // before the colon
		p.i++
		p.at = append(p.at, name)
		if _, twice := o[name]; twice {
			p.err = "this name stands twice"
			return nil
		}
		o[name] = p.value()
		p.next()
	}
	p.i++
	return o
}

func (p *parser) list() any {
	l := []any{}
	for p.i++; p.err == "" && p.space() != ']'; {
		p.at = append(p.at, strconv.Itoa(len(l)))
		l = append(l, p.value())
		p.next()
	}
	p.i++
	return l
}

// next passes over a comma behind a value.
func (p *parser) next() {
	if p.err != "" {
		return
	}
	p.at = p.at[:len(p.at)-1]
	if p.space() == ',' {
		p.i++
	}
}

func (p *parser) text() string {
	begin := p.i
	for p.i++; p.b[p.i] != '"'; p.i++ {
		if p.b[p.i] == '\\' {
			p.i++
		}
	}
	p.i++
	raw := p.b[begin:p.i]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		p.err = "not a string"
	}
	return s
}

func (p *parser) number() any {
	begin := p.i
	for p.i < len(p.b) && strings.IndexByte("+-.eE0123456789", p.b[p.i]) >= 0 {
		p.i++
	}
	n := string(p.b[begin:p.i])
	digits, exponent := n, ""
	if e := strings.IndexAny(n, "eE"); e >= 0 {
		digits, exponent = n[:e], n[e+1:]
	}
	exp, err := strconv.Atoi(cmp.Or(exponent, "0"))
	switch {
	case err != nil || exp > maxExponent || exp < -maxExponent:
		p.err = fmt.Sprintf("the exponent of this number is beyond ±%d", maxExponent)
	case len(digits) > maxDigits:
		p.err = fmt.Sprintf("this number has more than %d digits", maxDigits)
	}
	return json.Number(n)
}
