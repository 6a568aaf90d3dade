package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agora-relay/agora/internal/quote"
)

// Harmful reports whether a terminal would do something else than show a character: control characters move the cursor
// and more, those of direction and of line ends put what follows where it was not written.
func Harmful(r rune) bool {
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

// Tokens calls f for each character of s as it may be shown, and stops when f returns false. plain says that the
// character is shown as itself.
func Tokens(s string, f func(r rune, shown string, plain bool) bool) {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		shown, plain := s[i:i+size], true
		if Harmful(r) || r == utf8.RuneError && size == 1 {
			shown, plain = escaped(r, size, s[i]), false
		}
		if !f(r, shown, plain) {
			return
		}
		i += size
	}
}

// Visible returns s as one line that does nothing to a terminal but to be shown.
func Visible(s string) string {
	var b strings.Builder
	Tokens(s, func(_ rune, shown string, _ bool) bool {
		b.WriteString(shown)
		return true
	})
	return b.String()
}

// NameOf returns an agent's id as people see it: quoted where it could be taken for more than an id, or for this
// program.
func NameOf(id string) string {
	if id == Program {
		return quote.Full(id)
	}
	return quote.Name(id)
}

// Program is what the lines that the program says by itself begin with.
const Program = "agora"

// Indent stands before what continues from the line above.
const Indent = "    "
