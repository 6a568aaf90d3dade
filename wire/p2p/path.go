package p2p

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// path is a path that has been taken apart: of a card, or of a request. What it consists of is text with its escapes undone; nothing of it can be read as anything
// but text behind an escape again.
type path struct {
	segments []pattern
	query    []pair // in the order in which they were written; nil for none
}

// pattern is text with parameters in it: a segment of a path, or a value of a query.
type pattern []piece

// piece is a text, or a parameter.
type piece struct {
	text  string // what it stands for
	spelt string // how it is sent
	name  string // of a parameter; empty for a text
}

// pair is a member of a query.
type pair struct {
	key   pattern // text
	value pattern
	equal bool // there is a sign between them
}

// parsePath takes a path apart; a [Fault] of the number 400 where it is none. Several slashes at its beginning are one. Refused are, with or without escapes: control
// characters, backslashes, segments that are empty or dots, fragments; slashes and escapes behind an escape; and braces that do not hold the name of a parameter.
func parsePath(s string) (p path, err error) {
	switch {
	case len(s) > MaxPath:
		return p, malformed("path is longer than %d bytes", MaxPath)
	case !utf8.ValidString(s):
		return p, malformed("path is not valid UTF-8")
	case strings.ContainsRune(s, '#'):
		return p, malformed("path has a fragment")
	}
	s, query, _ := strings.Cut(strings.TrimLeft(s, "/"), "?")
	for last := false; !last; {
		var raw string
		raw, s, last = cutLast(s, "/")
		if raw == "" && !last {
			return p, malformed("path has an empty segment")
		}
		segment, err := parsePattern(raw, false)
		if err != nil {
			return p, err
		}
		if isDots(segment.text()) {
			return p, malformed("path has a segment of dots")
		}
		p.segments = append(p.segments, segment)
	}
	return p, p.parseQuery(query)
}

// cutLast is [strings.Cut] that says whether before is the last part.
func cutLast(s, sep string) (before, after string, last bool) {
	before, after, found := strings.Cut(s, sep)
	return before, after, !found
}

// parseQuery takes a query apart, without its question mark.
func (p *path) parseQuery(s string) error {
	for last := s == ""; !last; {
		var raw string
		raw, s, last = cutLast(s, "&")
		key, value, equal := strings.Cut(raw, "=")
		k, err := parsePattern(key, true)
		if err != nil {
			return err
		}
		if len(k) != 1 || k[0].name != "" {
			return malformed("query has a member without a name")
		}
		v, err := parsePattern(value, true)
		if err != nil {
			return err
		}
		p.query = append(p.query, pair{k, v, equal})
	}
	return nil
}

// parsePattern takes a segment, or a key or a value of a query, apart.
func parsePattern(s string, query bool) (all pattern, err error) {
	for s != "" {
		text, rest, brace := strings.Cut(s, "{")
		if text != "" {
			t, err := parseText(text, query)
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
		if !brace {
			return all, nil
		}
		name, after, closed := strings.Cut(rest, "}")
		switch {
		case !closed || !isName(name):
			return nil, malformed("path has a brace that holds no name")
		case len(all) > 0 && all[len(all)-1].name != "":
			return nil, malformed("path has nothing between two parameters")
		}
		all = append(all, piece{name: name})
		s = after
	}
	return all, nil
}

// parseText undoes the escapes of text, and checks what it stands for.
func parseText(raw string, query bool) (piece, error) {
	if strings.ContainsRune(raw, '}') {
		return piece{}, malformed("path has a brace that holds no name")
	}
	escaped := raw
	if query {
		if strings.ContainsAny(raw, "?;") {
			return piece{}, malformed("query has a sign that servers take for an end")
		}
		escaped = strings.ReplaceAll(raw, "+", "%20")
	}
	text, err := url.PathUnescape(escaped)
	if err != nil {
		return piece{}, malformed("path has a bad escape")
	}
	if what := forbidden(text, query); what != "" {
		return piece{}, malformed("path has %s", what)
	}
	if hasEscape(text) {
		return piece{}, malformed("path has an escape behind an escape")
	}
	return piece{text: text, spelt: spell(escaped)}, nil
}

// forbidden returns what text, its escapes undone, has that no part of a path, or of a query, may have; "" for nothing.
func forbidden(text string, query bool) string {
	switch {
	case !utf8.ValidString(text):
		return "an escape that is not valid UTF-8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "a control character"
	case !query && strings.ContainsRune(text, '\\'):
		return "a backslash"
	case !query && strings.ContainsRune(text, '/'):
		return "a slash in a segment"
	}
	return ""
}

// isDots reports whether a server may take a segment for one of dots: some drop what follows a semicolon.
func isDots(segment string) bool {
	segment, _, _ = strings.Cut(segment, ";")
	return segment == "." || segment == ".."
}

// isName reports whether s is the name of a parameter: letters, digits, "_" and "-", no digit first.
func isName(s string) bool {
	if s == "" || len(s) > maxName || '0' <= s[0] && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '_' && c != '-' && !isAlphanumeric(c) {
			return false
		}
	}
	return true
}

// hasEscape reports whether text has something that reads as an escape.
func hasEscape(text string) bool {
	for i := strings.IndexByte(text, '%'); i >= 0 && i+2 < len(text); i++ {
		if text[i] == '%' && isHex(text[i+1]) && isHex(text[i+2]) {
			return true
		}
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// text returns what a pattern without parameters stands for.
func (p pattern) text() string {
	if len(p) == 0 {
		return ""
	}
	return p[0].text
}

// concrete returns the pattern that a text is.
func concrete(text string) pattern {
	if text == "" {
		return nil
	}
	return pattern{{text: text}}
}

// isConcrete reports whether a pattern has no parameters: then it is one text, or nothing.
func (p pattern) isConcrete() bool { return len(p) == 0 || len(p) == 1 && p[0].name == "" }

// Escape returns text as it stands for itself in a segment of a path or a value of a query: every byte but letters, digits and -._~ is escaped.
func Escape(text string) string { return string(appendEscaped(nil, text, "-._~", false)) }

// spell returns text with escapes as it is sent: escapes stay, as do signs that a segment may have; all else is escaped.
func spell(escaped string) string {
	return string(appendEscaped(nil, escaped, "-._~!$&'()*+,;=:@", true))
}

// appendEscaped appends s with all bytes escaped but letters, digits, plain ones, and escapes where they are kept.
func appendEscaped(dst []byte, s, plain string, keep bool) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case isAlphanumeric(c), strings.IndexByte(plain, c) >= 0, keep && c == '%':
			dst = append(dst, c)
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}
