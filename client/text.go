package client

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/agora-relay/agora"
)

// encode returns a payload as JSON: raw JSON as it is, nil as nothing, anything else encoded.
func encode(payload any) (json.RawMessage, error) {
	switch p := payload.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return checked(p)
	case []byte:
		return checked(p)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(payload); err != nil {
		return nil, &agora.Error{Code: agora.InvalidRequest, Message: "payload can't be encoded as JSON", Cause: err}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func checked(raw []byte) (json.RawMessage, error) {
	if raw != nil && (!utf8.Valid(raw) || !json.Valid(raw)) {
		return nil, agora.Errorf(agora.InvalidRequest, "payload is no valid JSON")
	}
	return raw, nil
}

const lowerHex = "0123456789abcdef"

// appendString appends s, which is valid UTF-8, as a JSON string.
func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// unquote returns the text of a raw JSON string.
func unquote(raw []byte) string {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// unquoted returns a raw JSON string without its quotes; nothing for what is none.
func unquoted(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return string(raw[1 : len(raw)-1])
}

// isObject tells whether raw JSON is an object.
func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// withMember returns an object with one more member at its beginning; every
// other byte stays as it is. Nil counts as an empty object.
func withMember(object []byte, key string, value []byte) []byte {
	inside := bytes.TrimLeft(object, " \t\r\n")
	if len(inside) > 0 {
		inside = inside[1:]
	} else {
		inside = []byte("}")
	}
	out := make([]byte, 0, len(key)+len(value)+len(inside)+8)
	out = appendString(append(out, '{'), key)
	out = append(append(out, ':'), value...)
	if bytes.TrimLeft(inside, " \t\r\n")[0] != '}' {
		out = append(out, ',')
	}
	return append(out, inside...)
}

// member returns the raw value of a key at the top level of valid JSON, or
// false where there is no object or no such key.
func member(object []byte, key string) (json.RawMessage, bool) {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return nil, false
	}
	for i = skipSpace(object, i+1); i < len(object) && object[i] == '"'; i = skipSpace(object, i+1) {
		name := object[i:skipValue(object, i)]
		from := skipSpace(object, skipSpace(object, i+len(name))+1)
		to := skipValue(object, from)
		if to > len(object) || from > to {
			return nil, false
		}
		if unquote(name) == key {
			return object[from:to], true
		}
		if i = skipSpace(object, to); i >= len(object) || object[i] != ',' {
			return nil, false
		}
	}
	return nil, false
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && strings.IndexByte(" \t\r\n", b[i]) >= 0 {
		i++
	}
	return i
}

// skipValue returns where the value that begins at i ends.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			i++
			continue
		}
		if i++; depth == 0 && i <= len(b) && strings.IndexByte("\"}]", b[i-1]) >= 0 {
			return i
		}
	}
	return min(i, len(b))
}

// textOf returns the string "text" of an event's data.
func textOf(data []byte) (string, bool) {
	raw, ok := member(data, "text")
	if !ok || raw[0] != '"' {
		return "", false
	}
	return unquote(raw), true
}
