package p2p

import (
	"encoding/json"
	"net/url"
	pathpkg "path"
	"slices"
	"strings"

	"github.com/agora-relay/agora/internal/rawjson"
)

// Target is what is asked of an agent's server: a method, and a path below its address.
type Target struct {
	Method string
	Path   string // escaped; begins with one slash
	Query  string // escaped, without the question mark; empty where the skill's path has none
}

// URL returns the target below the address of an agent, which may have a path of its own; nothing else of the address but scheme and host stays.
func (t Target) URL(agent *url.URL) *url.URL {
	escaped := strings.TrimRight(agent.EscapedPath(), "/") + t.Path
	u := &url.URL{Scheme: agent.Scheme, Host: agent.Host, RawQuery: t.Query, RawPath: escaped}
	u.Path, _ = url.PathUnescape(escaped) // both parts have been checked
	return u
}

// values returns those of params that a path asks for, as text; nil where it asks for none.
func (p *path) values(params json.RawMessage) (map[string]string, error) {
	wanted := p.names()
	if len(wanted) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(wanted))
	for o := rawjson.NewObject(params, maxDepth); params != nil && o.Next(); {
		name := string(o.Name())
		if !slices.Contains(wanted, name) {
			continue
		}
		if _, twice := all[name]; twice {
			return nil, malformed("parameter %s stands twice", name)
		}
		text, err := valueOf(name, o.Val)
		if err != nil {
			return nil, err
		}
		all[name] = text
	}
	for _, name := range wanted {
		if _, ok := all[name]; !ok {
			return nil, malformed("parameter %s is missing", name)
		}
	}
	return all, nil
}

// names returns the names of a path's parameters, each once, in their order.
func (p *path) names() (all []string) {
	add := func(pieces pattern) {
		for _, piece := range pieces {
			if piece.name != "" && !slices.Contains(all, piece.name) {
				all = append(all, piece.name)
			}
		}
	}
	for _, s := range p.segments {
		add(s)
	}
	for _, q := range p.query {
		add(q.value)
	}
	return all
}

// valueOf returns the text of a parameter: of a string what it stands for, of a number, true or false the JSON.
func valueOf(name string, raw []byte) (string, error) {
	switch raw[0] {
	case '"':
		if rawjson.Halved(raw) {
			return "", malformed("parameter %s %s", name, rawjson.HalfPair)
		}
		return rawjson.Unquote(raw), nil
	case '{', '[', 'n':
		return "", malformed("parameter %s must be a string, a number, true or false", name)
	}
	return string(raw), nil
}

// filler makes a target of a path of a card.
type filler struct {
	asked   *path             // in the form of that path
	values  map[string]string // of the parameters of asked
	slashes bool
}

func (f *filler) fill(p *path) (Target, error) {
	var b []byte
	var err error
	for i, s := range p.segments {
		if b, err = f.segment(append(b, '/'), s, f.asked.segments[i]); err != nil {
			return Target{}, err
		}
	}
	t := Target{Path: string(b)}
	b = b[:0]
	for i, q := range p.query {
		if i > 0 {
			b = append(b, '&')
		}
		b = append(b, q.key[0].spelt...)
		if q.equal {
			b = append(b, '=')
		}
		if b, _, err = f.pattern(b, q.value, f.asked.query[i].value, true); err != nil {
			return Target{}, err
		}
	}
	t.Query = string(b)
	if len(t.Path)+len(t.Query) >= MaxPath {
		return Target{}, malformed("path is longer than %d bytes", MaxPath)
	}
	return t, nil
}

func (f *filler) segment(dst []byte, p, asked pattern) ([]byte, error) {
	dst, text, err := f.pattern(dst, p, asked, false)
	if err == nil && isDots(text) {
		err = malformed("path has a segment of dots")
	}
	return dst, err
}

// pattern appends a pattern of the card with its parameters filled, and returns what that stands for.
func (f *filler) pattern(dst []byte, p, asked pattern, query bool) (_ []byte, text string, err error) {
	var given []string // where asked is filled already
	if !p.same(asked) {
		given, _ = p.values(asked.text(), query)
	}
	for _, piece := range p {
		if piece.name == "" {
			dst, text = append(dst, piece.spelt...), text+piece.text
			continue
		}
		value := f.values[piece.name]
		if given != nil {
			value, given = given[0], given[1:]
		}
		if err := f.check(piece.name, value, query); err != nil {
			return dst, "", err
		}
		dst, text = append(dst, Escape(value)...), text+value
		if len(dst) > MaxPath {
			return dst, "", malformed("path is longer than %d bytes", MaxPath)
		}
	}
	return dst, text, nil
}

// check reports what is wrong with a value.
func (f *filler) check(name, value string, query bool) error {
	switch {
	case value == "" && !query:
		return malformed("parameter %s is empty", name)
	case len(value) > MaxPath:
		return malformed("parameter %s is longer than %d bytes", name, MaxPath)
	}
	parts := []string{value}
	if f.slashes && !query && strings.ContainsRune(value, '/') {
		parts = strings.Split(value, "/")
	}
	for _, part := range parts {
		if what := forbidden(part, query); what != "" {
			return malformed("parameter %s has %s", name, what)
		}
		if len(parts) > 1 && (part == "" || isDots(part)) {
			return malformed("parameter %s has an empty segment, or one of dots", name)
		}
	}
	return nil
}

// holds reports whether a target, resolved as a server might, is still below its host and of the form of a path of the card. slashes may stand in its values.
func (t Target) holds(p *path, slashes bool) bool {
	base := &url.URL{Scheme: "http", Host: "agent.invalid"}
	u, err := base.Parse(t.Path + "?" + t.Query)
	if err != nil || u.Scheme != base.Scheme || u.Host != base.Host || u.User != nil || u.Fragment != "" {
		return false
	}
	if u.EscapedPath() != t.Path || u.RawQuery != t.Query {
		return false
	}
	if clean := pathpkg.Clean(u.Path); clean != u.Path && clean+"/" != u.Path {
		return false
	}
	segments := strings.Split(t.Path[1:], "/")
	if len(segments) != len(p.segments) || !slashes && strings.Count(u.Path, "/") != len(segments) {
		return false
	}
	for i, s := range segments {
		text, err := url.PathUnescape(s)
		if err != nil || !p.segments[i].takes(concrete(text), false) {
			return false
		}
	}
	return true
}
