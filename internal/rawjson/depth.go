package rawjson

import "bytes"

// Deeper reports whether more than so many objects and lists stand in each other in a text, valid JSON or not. It looks
// at brackets alone, so it may be asked before anything recursive is.
func Deeper(b []byte, most int) bool {
	if len(b) <= most || bytes.Count(b, []byte{'{'})+bytes.Count(b, []byte{'['}) <= most {
		return false // as nearly all
	}
	depth, text := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
