// Package quote shows text of others within sentences, so that it can't be taken for a part of them, neither by a model
// nor by people at a terminal.
package quote

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// most is how many characters of an id ID shows: enough to know an agent by, and too few for an instruction.
const most = 40

// ID returns an agent's id in quotes, what can't be seen escaped, and cut at 40 characters: an ellipsis behind the
// quotes says so.
func ID(id string) string {
	n := 0
	for at := range id {
		if n++; n > most {
			return Full(id[:at]) + "…"
		}
	}
	return Full(id)
}

// Name returns an id or a name as it is where it is one word of letters, digits and few other characters, else whole in
// quotes, with what can't be seen escaped.
func Name(id string) string {
	if id == "" || strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) || !utf8.ValidString(id) {
		return Full(id)
	}
	return id
}

// plain reports whether a character may stand in a name without quotes.
func plain(r rune) bool {
	return !Unseen(r) && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-_./@+~#", r))
}

// Names returns names as Name does, with commas between them; no more than some of them, and how many more there are.
func Names(all []string, most int) string {
	shown := make([]string, 0, min(len(all), most))
	for _, name := range all[:min(len(all), most)] {
		shown = append(shown, Name(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(all) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Line returns a text as one line: ends of lines, and what else can't be seen, are escaped.
func Line(text string) string { return escaped(text, false) }

// Full returns a text in quotes, whole, with what can't be seen escaped.
func Full(text string) string { return `"` + escaped(text, true) + `"` }

func escaped(text string, quotes bool) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n':
			b.WriteString(`\n`)
		case quotes && (r == '"' || r == '\\'):
			b.WriteString(`\` + string(r))
		case Unseen(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case Unseen(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case Unseen(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

// Unseen reports whether a character does not show, or has others stand elsewhere: control and format characters (those
// of direction and of no width among them), ends of lines, spaces other than the common one, variation selectors, and
// letters without a form.
func Unseen(r rune) bool {
	return r != ' ' && (!unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || r == '\u2800')
}
