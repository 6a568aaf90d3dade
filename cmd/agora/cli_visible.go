package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// harmful tells whether a terminal would do something else than show a character: control characters move the cursor
// and more, those of direction and of line ends put what follows where it was not written.
func harmful(r rune) bool {
	switch {
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Bidi_Control, r):
		return true
	}
	return r == '\u2028' || r == '\u2029'
}

// escaped returns how a harmful character, or a byte that is of none, is shown.
func escaped(r rune, size int, first byte) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf(`\x%02x`, first)
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// tokens calls f for each character of s as it may be shown, and stops when that returns false. plain tells that it is shown as itself.
func tokens(s string, f func(r rune, shown string, plain bool) bool) {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		shown, plain := s[i:i+size], true
		if harmful(r) || r == utf8.RuneError && size == 1 {
			shown, plain = escaped(r, size, s[i]), false
		}
		if !f(r, shown, plain) {
			return
		}
		i += size
	}
}

// visible returns s as one line that does nothing to a terminal but to be shown.
func visible(s string) string {
	var b strings.Builder
	tokens(s, func(_ rune, shown string, _ bool) bool {
		b.WriteString(shown)
		return true
	})
	return b.String()
}

// nameOf returns an agent's id as people see it: quoted where it could be taken for more than an id, or for this program.
func nameOf(id string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-_./@+~#", r)
	}
	if id == "" || id == program || strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		return strconv.Quote(id)
	}
	return id
}

// program is what its own lines begin with.
const program = "agora"
