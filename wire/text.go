package wire

import (
	"bytes"
	"encoding/json"
)

// AppendText appends the text of a chunk, a raw JSON string of a decoded frame. It answers false, and appends nothing,
// where the string is not spelt as [AppendMessage] spells that text: escapes other than \" \\ \n \r \t. Such a chunk stays
// JSON, so that its bytes stay as they are. It allocates nothing when dst has room.
func AppendText(dst []byte, chunk json.RawMessage) ([]byte, bool) {
	raw, began := chunk[1:len(chunk)-1], len(dst)
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return append(dst, raw...), true
	}
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
