package rawjson

import (
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
	n := 0
	for n < len(s) && n < 16 && s[n] < utf8.RuneSelf && !special[s[n]] { // all of a token, mostly
		n++
	}
	if n < len(s) {
		if n += plain(s[n:], tops); n < len(s) && !utf8.Valid(s[n:]) {
			return AppendString(dst, string(s))
		}
	}
	dst = append(append(dst, '"'), s[:n]...)
	for s = s[n:]; len(s) > 0; s = s[n:] {
		if special[s[0]] {
			dst = appendEscape(dst, s[0])
			s = s[1:]
		}
		n = plain(s, 0)
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
		n := plain(s, 0)
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
