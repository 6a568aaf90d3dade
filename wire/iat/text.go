package iat

import (
	"bytes"
	"encoding/json"

	"github.com/agora-relay/agora/internal/rawjson"
)

// What stands before and behind the text of a chunk (IAT §3.1, R02).
const (
	textBefore = `{"text":"`
	textBehind = `"}`
)

// TextBody returns the text of a chunk's payload, valid JSON, where that is exactly what [AppendEnvelope] writes for that text:
// {"text":"…"}, with escapes \" \\ \n \r \t alone. Stored as text it reaches agents of every dialect as text, and keeps
// its bytes for those of this one. Another payload stays JSON. The text may be a slice of the payload.
func TextBody(payload json.RawMessage) (text []byte, ok bool) {
	if !bytes.HasPrefix(payload, []byte(textBefore)) || !bytes.HasSuffix(payload, []byte(textBehind)) {
		return nil, false
	}
	from, to := len(textBefore)-1, len(payload)-1
	if to-from < 2 {
		return nil, false
	}
	raw := payload[from:to]
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '"') < 0 && bytes.IndexByte(inner, '\\') < 0 {
		return inner, true
	}
	o := rawjson.NewObject(payload, 1)
	if !o.Next() || o.Pos() != to { // something follows the text
		return nil, false
	}
	return rawjson.AppendPlain(make([]byte, 0, len(raw)), raw)
}

// appendTextBody appends the payload of a chunk of text.
func appendTextBody(dst, text []byte) []byte {
	return append(rawjson.AppendText(append(dst, textBefore[:len(textBefore)-1]...), text), '}')
}
