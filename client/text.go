package client

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
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

// unquoted returns a raw JSON string without its quotes; nothing for what is none.
func unquoted(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return string(raw[1 : len(raw)-1])
}

// isObject reports whether raw JSON is an object.
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
	out = rawjson.AppendString(append(out, '{'), key)
	out = append(append(out, ':'), value...)
	if bytes.TrimLeft(inside, " \t\r\n")[0] != '}' {
		out = append(out, ',')
	}
	return append(out, inside...)
}

// maxDepth is how deeply valid JSON is looked into, which is as deeply as anything decodes it.
const maxDepth = 10000

// member returns the raw value of a key at the top level of valid JSON, or
// false where there is no object or no such key.
func member(object []byte, key string) (json.RawMessage, bool) {
	for o := rawjson.NewObject(object, maxDepth); o.Next(); {
		if string(o.Name()) == key {
			return o.Val, true
		}
	}
	return nil, false
}

// textOf returns the string "text" of an event's data.
func textOf(data []byte) (string, bool) {
	raw, ok := member(data, "text")
	if !ok || raw[0] != '"' {
		return "", false
	}
	return rawjson.Unquote(raw), true
}
