package rawjson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

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

// Same is [Unquote], but for a string that is old again: it returns old itself, and allocates nothing.
func Same(old string, raw []byte) string {
	if old != "" && bytes.IndexByte(raw, '\\') < 0 && string(raw[1:len(raw)-1]) == old {
		return old
	}
	return Unquote(raw)
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
