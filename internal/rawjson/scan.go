// Package rawjson walks JSON and writes strings without decoding values.
//
// What stands in a value keeps its bytes: callers are handed slices of their input, and read into those that concern them.
package rawjson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Scanner checks JSON as it passes over it. Its input is valid UTF-8; it
// decodes nothing and allocates nothing. After a method has returned false,
// [Scanner.Fault] says why and where.
type Scanner struct {
	b       []byte
	i       int    // next byte
	max     int    // depth
	escapes bool   // the last string has some
	what    string // what is wrong; empty while nothing is
	at      int    // where
}

// Pos returns where the scanner stands: behind what it has passed over.
func (s *Scanner) Pos() int { return s.i }

// Fault returns what was the first thing wrong, as the rest of a sentence, and at which byte; "" while nothing is.
func (s *Scanner) Fault() (what string, at int) { return s.what, s.at }

// FailAt notes that something is wrong at a byte, unless something was before, and returns false.
func (s *Scanner) FailAt(at int, what string) bool {
	if s.what == "" {
		s.what, s.at = what, at
	}
	return false
}

// fail is FailAt the next byte.
func (s *Scanner) fail(what string) bool { return s.FailAt(s.i, what) }

// Failed reports whether anything was wrong.
func (s *Scanner) Failed() bool { return s.what != "" }

// space returns where the white space ends that begins at b[i].
func space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// take passes over c, if it comes next.
func (s *Scanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// End passes over white space and wants nothing after it.
func (s *Scanner) End() bool {
	s.i = space(s.b, s.i)
	if s.i < len(s.b) {
		s.fail("something follows the end")
	}
	return s.what == ""
}

// Value passes over any value that stands in depth others.
func (s *Scanner) Value(depth int) bool {
	if s.i >= len(s.b) {
		return s.fail("it ends where a value should be")
	}
	switch c := s.b[s.i]; {
	case c == '"':
		return s.text()
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.fail("a value should be here")
}

func (s *Scanner) object(depth int) bool {
	if !s.open('{', depth) {
		return false
	}
	for more := false; s.next('}', more); more = true {
		if s.key() == 0 || !s.Value(depth) {
			return false
		}
	}
	return s.what == ""
}

func (s *Scanner) array(depth int) bool {
	if !s.open('[', depth) {
		return false
	}
	for more := false; s.next(']', more); more = true {
		if !s.Value(depth) {
			return false
		}
	}
	return s.what == ""
}

// open passes over the bracket that begins an object or a list, which makes so many that stand in each other.
func (s *Scanner) open(bracket byte, depth int) bool {
	switch {
	case depth > s.max:
		return s.fail("it is nested too deeply")
	case s.i < len(s.b) && s.b[s.i] == bracket:
		s.i++
		return true
	case bracket == '{':
		return s.fail("an object should be here")
	}
	return s.fail("a list should be here")
}

// next goes to the next member or value of an object or a list, behind others if there are more. It returns false behind
// the closing bracket, and where it has failed.
func (s *Scanner) next(bracket byte, more bool) bool {
	b, i := s.b, space(s.b, s.i)
	s.i = i
	switch {
	case i < len(b) && b[i] == bracket:
		s.i++
		return false
	case !more:
		return true
	case i < len(b) && b[i] == ',':
		s.i = space(b, i+1)
		return true
	case bracket == '}':
		return s.fail("a comma or the end of an object should be here")
	}
	return s.fail("a comma or the end of a list should be here")
}

// key passes over a member up to its value, and returns where the key's closing quote stands; 0 where it has failed.
func (s *Scanner) key() (end int) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		s.fail("a key should be here")
		return 0
	}
	if !s.text() {
		return 0
	}
	end = s.i - 1
	i := space(s.b, s.i)
	if s.i = i; i >= len(s.b) || s.b[i] != ':' {
		s.fail("a colon should be here")
		return 0
	}
	s.i = space(s.b, i+1)
	return end
}

func (s *Scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return s.fail("a value should be here")
	}
	s.i += len(word)
	return true
}

// number passes over -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func (s *Scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return s.fail("a number lacks its digits")
	}
	if s.take('.') && !s.digits() {
		return s.fail("a number lacks its digits after the point")
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return s.fail("a number lacks its exponent")
		}
	}
	return true
}

func (s *Scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

// text passes over a string.
func (s *Scanner) text() bool {
	b, escapes := s.b, false
	for i := s.i + 1; ; {
		i = plain(b, i, 0)
		s.i = i
		switch {
		case i >= len(b):
			return s.fail("a string has no end")
		case b[i] == '"':
			s.i, s.escapes = i+1, escapes
			return true
		case b[i] != '\\':
			return s.fail("a string has a raw control character")
		}
		n := escape(b[i:])
		if n == 0 {
			return s.fail("a string has a bad escape")
		}
		i += n
		escapes = true
	}
}

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

// Unquote returns the string that valid raw JSON, quotes included, stands for.
func Unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "" // the scanner has checked it: it can't fail
	}
	return s
}

// Text is [Unquote], but for a string that is old again: it returns old itself, and allocates nothing. It answers false
// where the string is [Halved].
func Text(raw []byte, old string) (text string, whole bool) {
	if bytes.IndexByte(raw, '\\') >= 0 {
		return Unquote(raw), !Halved(raw)
	}
	if raw = raw[1 : len(raw)-1]; string(raw) == old {
		return old, true
	}
	return string(raw), true
}

// Integer reads an integer from min to below the bound, which is at most 10^16. It must be written with digits alone.
func Integer(raw []byte, min, below uint64) (n uint64, ok bool) {
	ok = len(raw) <= 16
	for i := 0; ok && i < len(raw); i++ {
		ok = '0' <= raw[i] && raw[i] <= '9'
		n = n*10 + uint64(raw[i]-'0')
	}
	if !ok || n < min || n >= below {
		return 0, false
	}
	return n, true
}

// AppendPlain appends the text of a raw JSON string. It answers false, and appends nothing, where [AppendText] would spell
// that text in another way: where the string has escapes other than \" \\ \n \r \t. It allocates nothing when dst has room.
func AppendPlain(dst, raw []byte) ([]byte, bool) {
	raw = raw[1 : len(raw)-1]
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return append(dst, raw...), true
	}
	began := len(dst)
	dst = append(dst, raw[:i]...)
	for ; i < len(raw); i++ {
		c := raw[i]
		if c == '\\' {
			i++
			if c = unescaped[raw[i]]; c == 0 {
				return dst[:began], false
			}
		}
		dst = append(dst, c)
	}
	return dst, true
}

// unescaped is what a backslash and a byte stand for, where nothing else is written for that.
var unescaped = [256]byte{'"': '"', '\\': '\\', 'n': '\n', 'r': '\r', 't': '\t'}

// BadUTF8 returns where b stops being valid UTF-8, -1 when it never does.
func BadUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return -1
}
