package wire

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner checks JSON as it passes over it. Its input is valid UTF-8; it
// decodes nothing and allocates nothing. After a method has returned false,
// what and at say why and where.
type scanner struct {
	b    []byte
	i    int    // next byte
	max  int    // depth
	what string // what is wrong; empty while nothing is
	at   int    // where
}

// fail notes the first thing that is wrong, and returns false.
func (s *scanner) fail(what string) bool {
	if s.what == "" {
		s.what, s.at = what, s.i
	}
	return false
}

// failed tells whether anything was wrong.
func (s *scanner) failed() bool { return s.what != "" }

// space passes over white space.
func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// take passes over c, if it comes next.
func (s *scanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// end passes over white space and wants nothing after it.
func (s *scanner) end() bool {
	s.space()
	if !s.failed() && s.i < len(s.b) {
		return s.fail("something follows the end")
	}
	return !s.failed()
}

// value passes over any value, which stands in depth others.
func (s *scanner) value(depth int) bool {
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

func (s *scanner) object(depth int) bool {
	o := object{scanner: *s, depth: depth}
	for o.next() {
	}
	*s = o.scanner
	return !s.failed()
}

func (s *scanner) array(depth int) bool {
	l := list{scanner: *s, depth: depth}
	for l.next() {
	}
	*s = l.scanner
	return !s.failed()
}

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return s.fail("a value should be here")
	}
	s.i += len(word)
	return true
}

// number passes over -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func (s *scanner) number() bool {
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

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

// special are the bytes at which a string needs a look.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

const tops = 0x8080808080808080 // the top bit of each of eight bytes

// plain returns how many bytes stand before the first that is special, or has its top bit set where that is in high: tops, or 0.
func plain(b []byte, high uint64) int {
	const ones = 0x0101010101010101
	i := 0
	for ; i+16 <= len(b); i += 16 { // sixteen at a time
		x, y := binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint64(b[i+8:])
		// The top bit of a byte is set where that byte is below 0x20, a quote or a backslash.
		p := ((x - ones*0x20) | ((x ^ ones*'"') - ones) | ((x ^ ones*'\\') - ones)) &^ x
		q := ((y - ones*0x20) | ((y ^ ones*'"') - ones) | ((y ^ ones*'\\') - ones)) &^ y
		if (p|q)&tops|(x|y)&high != 0 {
			break
		}
	}
	for i < len(b) && !special[b[i]] && uint64(b[i])&high&0x80 == 0 {
		i++
	}
	return i
}

// text passes over a string.
func (s *scanner) text() bool {
	b, i := s.b, s.i+1
	for {
		near := min(i+16, len(b))
		for i < near && !special[b[i]] {
			i++
		}
		if i == near {
			i += plain(b[i:], 0)
		}
		s.i = i
		if i >= len(b) {
			return s.fail("a string has no end")
		}
		switch b[i] {
		case '"':
			s.i++
			return true
		case '\\':
			n := escape(b[i:])
			if n == 0 {
				return s.fail("a string has a bad escape")
			}
			i += n
		default:
			return s.fail("a string has a raw control character")
		}
	}
}

// escape returns how many bytes the escape takes that b begins with, 0 where it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	}
	if _, ok := escaped(b); ok {
		return 6
	}
	return 0
}

// unit returns how many bytes at the beginning of valid raw JSON text stay together: an escape, an escaped
// surrogate pair or a rune. Half a surrogate pair stands alone.
func unit(b []byte) int {
	if b[0] != '\\' {
		_, n := utf8.DecodeRune(b)
		return n
	}
	n := escape(b)
	if r, ok := escaped(b); ok && 0xD800 <= r && r < 0xDC00 {
		if low, ok := escaped(b[n:]); ok && 0xDC00 <= low && low < 0xE000 {
			return 2 * n
		}
	}
	return n
}

// halfPair is what is wrong with a string that Agora reads: no Unicode has half a surrogate pair, though JSON can spell it.
const halfPair = "has half a surrogate pair"

// halved tells whether valid raw JSON text has half a surrogate pair.
func halved(b []byte) bool {
	for {
		at := bytes.IndexByte(b, '\\')
		if at < 0 {
			return false
		}
		b = b[at:]
		n := unit(b)
		if r, ok := escaped(b); ok && n == 6 && utf16.IsSurrogate(r) {
			return true
		}
		b = b[n:]
	}
}

// escaped returns the code unit of the \uXXXX at the beginning of b.
func escaped(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
