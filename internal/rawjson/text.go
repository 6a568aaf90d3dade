package rawjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string, escaping no more than JSON asks
// for. Bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && !special[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		dst = append(dst, s[from:i]...)
		dst = appendEscape(dst, c)
		i++
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// AppendText is [AppendString] of text, which is mostly long, valid, and in need of few escapes.
func AppendText(dst, s []byte) []byte {
	n := plain(s, 0, tops)
	if n < len(s) && !utf8.Valid(s[n:]) {
		return AppendString(dst, string(s))
	}
	dst = append(append(dst, '"'), s[:n]...)
	for s = s[n:]; len(s) > 0; s = s[n:] {
		if special[s[0]] {
			dst = appendEscape(dst, s[0])
			s = s[1:]
		}
		n = plain(s, 0, 0)
		dst = append(dst, s[:n]...)
	}
	return append(dst, '"')
}

// TextSize returns how many bytes [AppendText] appends.
func TextSize(s []byte) int {
	if !utf8.Valid(s) {
		return len(AppendString(nil, string(s)))
	}
	size := 2
	for len(s) > 0 {
		n := plain(s, 0, 0)
		if size += n; n == len(s) {
			break
		}
		var escape [6]byte
		size += len(appendEscape(escape[:0], s[n]))
		s = s[n+1:]
	}
	return size
}

// appendEscape appends what stands for a byte that may not stand for itself.
func appendEscape(dst []byte, c byte) []byte {
	switch {
	case c >= utf8.RuneSelf:
		return append(dst, "\uFFFD"...)
	case c == '"', c == '\\':
		return append(dst, '\\', c)
	case c == '\n':
		return append(dst, '\\', 'n')
	case c == '\r':
		return append(dst, '\\', 'r')
	case c == '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendMember appends a member of an object that is a string, behind another one; nothing where it is empty.
func AppendMember(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return AppendString(append(AppendString(append(dst, ','), name), ':'), text)
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

// plain returns where, from b[i] on, the first byte stands that is special, or has its top bit set where that is in high:
// tops, or 0.
func plain(b []byte, i int, high uint64) int {
	for ; i+16 <= len(b); i += 16 { // sixteen at a time
		x, y := stops(binary.LittleEndian.Uint64(b[i:]), high), stops(binary.LittleEndian.Uint64(b[i+8:]), high)
		if x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
		if y != 0 {
			return i + 8 + bits.TrailingZeros64(y)/8
		}
	}
	for i < len(b) && !special[b[i]] && uint64(b[i])&high&0x80 == 0 {
		i++
	}
	return i
}

// stops has the top bit set of the first of the eight bytes x at which plain stops, and of none before that.
func stops(x, high uint64) uint64 {
	const ones = 0x0101010101010101
	return ((x-ones*0x20)|((x^ones*'"')-ones)|((x^ones*'\\')-ones))&^x&tops | x&high
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

// Unit returns how many bytes at the beginning of valid raw JSON text stay together: an escape, an escaped
// surrogate pair or a rune. Half a surrogate pair stands alone.
func Unit(b []byte) int {
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

// HalfPair is what is wrong with a string that is [Halved]: no Unicode has half a surrogate pair, though JSON can spell it.
const HalfPair = "has half a surrogate pair"

// Halved reports whether valid raw JSON text has half a surrogate pair.
func Halved(b []byte) bool {
	for {
		at := bytes.IndexByte(b, '\\')
		if at < 0 {
			return false
		}
		b = b[at:]
		n := Unit(b)
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
