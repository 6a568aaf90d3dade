package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/eventdata"
	"github.com/agora-relay/agora/internal/rawjson"
)

// AppendBody appends a message's body as a JSON value: text as a string, JSON as it is, anything else as a string of base64. It
// appends nothing where there is no body.
func AppendBody(dst []byte, m *agora.Message) []byte {
	switch m.Media {
	case "":
		return append(dst, m.Body...)
	case agora.MediaText:
		return rawjson.AppendText(dst, m.Body)
	}
	return appendBytes(dst, m.Body)
}

// AppendChunk appends the body of a part of a stream as a JSON string. Of other dialects it may be JSON that is none: an
// object with a string "text" is that string as it was written, other JSON a string of its JSON text, and none at all is empty.
func AppendChunk(dst []byte, m *agora.Message) []byte {
	if m.Media != "" || len(m.Body) > 0 && m.Body[0] == '"' {
		return AppendBody(dst, m)
	}
	body := bytes.Trim(m.Body, " \t\r\n")
	switch {
	case len(body) == 0:
		return append(dst, '"', '"')
	case body[0] == '"':
		return append(dst, body...)
	case body[0] == '{':
		if from, to, what := eventdata.Text(body, maxDataDepth); what == "" {
			return append(dst, body[from:to]...)
		}
	}
	return rawjson.AppendText(dst, body)
}

// ChunkText returns the text of a part of a stream, as [AppendChunk] has it; UNAVAILABLE for bytes that are none.
func ChunkText(m *agora.Message) (text string, err error) {
	if m.Media == agora.MediaText {
		return string(m.Body), nil
	}
	if Media(m) != "" || json.Unmarshal(AppendChunk(nil, m), &text) != nil {
		return "", agora.Errorf(agora.Unavailable, "a part of the answer is no text")
	}
	return text, nil
}

// Media returns the media type of a body that is written as base64, without the item that it is a part of; "" where it is text or JSON.
func Media(m *agora.Message) string {
	if m.Media == agora.MediaText {
		return ""
	}
	media, _ := agora.SplitItem(m.Media)
	return media
}

// Item returns of which item of its stream a body is a part; 0 for one by itself.
func Item(m *agora.Message) uint64 {
	_, item := agora.SplitItem(m.Media)
	return uint64(item)
}

// appendBytes appends a JSON string of base64.
func appendBytes(dst, b []byte) []byte {
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), b)
	return append(dst, '"')
}

// AppendText appends the text of a chunk, a raw JSON string of a decoded frame. It answers false, and appends nothing,
// where the string is not spelt as [AppendMessage] spells that text: escapes other than \" \\ \n \r \t. Such a chunk stays
// JSON, so that its bytes stay as they are. It allocates nothing when dst has room.
func AppendText(dst []byte, chunk json.RawMessage) ([]byte, bool) {
	return rawjson.AppendPlain(dst, chunk)
}
