package policy

import (
	"errors"
	"fmt"
	"strings"
)

// pattern is a text in which '*' stands for any run of characters, none
// included, and ${name} for the name of who asks. A backslash before a
// character takes that for what it is.
type pattern []piece

// piece is a literal, or what stands for something else.
type piece struct {
	kind pieceKind
	text string // of a literal
}

type pieceKind uint8

const (
	literal pieceKind = iota
	star
	name
)

const nameVariable = "${name}"

// maxPattern is the longest pattern, in bytes.
const maxPattern = 512

// parsePattern reads a pattern.
func parsePattern(text string) (pattern, error) {
	if text == "" {
		return nil, errors.New("a pattern is empty")
	}
	if len(text) > maxPattern {
		return nil, fmt.Errorf("a pattern is longer than %d bytes", maxPattern)
	}
	var p pattern
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			p = append(p, piece{literal, plain.String()})
			plain.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			plain.WriteByte(text[i])
		case text[i] == '*':
			flush()
			if len(p) == 0 || p[len(p)-1].kind != star {
				p = append(p, piece{kind: star})
			}
		case strings.HasPrefix(text[i:], nameVariable):
			flush()
			p = append(p, piece{kind: name})
			i += len(nameVariable) - 1
		case strings.HasPrefix(text[i:], "${"):
			return nil, fmt.Errorf("pattern %q: the only variable is %s; write \\${ for the characters", text, nameVariable)
		default:
			plain.WriteByte(text[i])
		}
	}
	flush()
	return p, nil
}

// match reports whether the pattern stands for s, asked by who has a name. It
// allocates nothing, and takes at most the product of both lengths.
func (p pattern) match(s, who string) bool {
	at, back, from := 0, -1, 0 // back: the piece behind the last star; from: where that was tried last
	rest := s
	for {
		switch {
		case at < len(p) && p[at].kind == star:
			at++
			back, from = at, len(s)-len(rest)
			continue
		case at < len(p):
			text := p[at].text
			if p[at].kind == name {
				text = who
			}
			if strings.HasPrefix(rest, text) {
				rest = rest[len(text):]
				at++
				continue
			}
		case rest == "":
			return true
		}
		if back < 0 || from >= len(s) {
			return false
		}
		from++
		at, rest = back, s[from:]
	}
}

// covers reports whether the pattern says in so many words what s begins with, up to its first dot.
func (p pattern) covers(s string) bool {
	head := s[:strings.IndexByte(s, '.')+1]
	return len(p) > 0 && p[0].kind == literal && head != "" && strings.HasPrefix(p[0].text, head)
}

// patterns are several: any of them will do.
type patterns []pattern

func parsePatterns(texts []string) (patterns, error) {
	all := make(patterns, 0, len(texts))
	for _, text := range texts {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (ps patterns) match(s, who string) bool {
	for _, p := range ps {
		if p.match(s, who) {
			return true
		}
	}
	return false
}

// matchSpace is match for the name of a space. A system space is meant only
// by a pattern that names its kind: "*" is all public ones.
func (ps patterns) matchSpace(s, who string, system bool) bool {
	for _, p := range ps {
		if (!system || p.covers(s)) && p.match(s, who) {
			return true
		}
	}
	return false
}
