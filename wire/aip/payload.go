package aip

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// AppendPayload appends content as a JSON payload: a lone text that is JSON as it stands, other text as a string, and several items or bytes as
// {"content":[{"text":…},{"media":…,"data":…}]}. Nothing is appended where there is no content. A text that as JSON would come back as something else is a
// string: one that is itself a JSON string, or an object that [ItemsOf] takes for content. So content that goes there and back is what it was.
func AppendPayload(dst []byte, items []Item) []byte {
	switch {
	case len(items) == 0:
		return dst
	case len(items) == 1 && items[0].Mode == Mode_TEXT:
		if standsAsJSON(items[0].Data) {
			return append(dst, items[0].Data...)
		}
		return rawjson.AppendText(dst, items[0].Data)
	}
	dst = append(dst, `{"content":[`...)
	for n, i := range items {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = appendPiece(dst, i)
	}
	return append(dst, `]}`...)
}

// appendPiece appends an item of a payload's content.
func appendPiece(dst []byte, i Item) []byte {
	if i.Mode == Mode_TEXT {
		return append(rawjson.AppendText(append(dst, `{"text":`...), i.Data), '}')
	}
	dst = append(append(append(dst, `{"media":"`...), MediaOf(i.Mode)...), `","data":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, i.Data), `"}`...)
}

// payloadWithin returns content as a payload of at most so many bytes, nil where there is none; false where it is larger.
func payloadWithin(items []Item, most int) (json.RawMessage, bool) {
	if len(items) == 0 {
		return nil, true
	}
	n := 0
	for _, i := range items {
		n += len(i.Data)
	}
	if n > most {
		return nil, false
	}
	body := AppendPayload(make([]byte, 0, n+n/3+32*(1+len(items))), items)
	return body, len(body) <= most
}

// standsAsJSON reports whether a text is JSON that comes back as it is.
func standsAsJSON(text []byte) bool {
	if !isJSON(text) {
		return false
	}
	switch first := bytes.TrimLeft(text, " \t\r\n"); first[0] {
	case '"':
		return false
	case '{':
		_, is := contentForm(text)
		return !is
	}
	return true
}

// isJSON reports whether a text is one JSON value, nested no deeper than frames may be.
func isJSON(text []byte) bool {
	first := bytes.TrimLeft(text, " \t\r\n")
	if len(first) == 0 {
		return false
	}
	switch c := first[0]; {
	case c == '{':
		o := rawjson.NewObject(text, maxDepth)
		for o.Next() {
		}
		return o.End()
	case c == '[':
		l := rawjson.NewList(first, maxDepth)
		for l.Next() {
		}
		return l.End()
	case c == '"', c == '-', c == 't', c == 'f', c == 'n', '0' <= c && c <= '9':
		return json.Valid(text)
	}
	return false
}

// ItemsOf returns what a message of the core that is no chunk says, as content: nil where it has no body. Text is a text, bytes are an item of their kind, a JSON string is its
// text, and other JSON its text, but for what [AppendPayload] writes of several items or bytes, and for {"media":…,"data":…}: that is those again. Text may be a slice of the body.
func ItemsOf(m *agora.Message) []Item {
	switch {
	case m.Body == nil:
		return nil
	case m.Media == agora.MediaText:
		return []Item{{Mode_TEXT, m.Body}}
	case m.Media != "":
		return []Item{{ModeOf(m.Media), m.Body}}
	}
	switch first := bytes.TrimLeft(m.Body, " \t\r\n"); {
	case len(first) == 0:
		return nil
	case first[0] == '"':
		return []Item{{Mode_TEXT, []byte(rawjson.Unquote(bytes.TrimRight(first, " \t\r\n")))}}
	case first[0] == '{':
		if items, is := contentForm(m.Body); is {
			return itemsIn(items)
		}
	}
	return []Item{{Mode_TEXT, m.Body}}
}

// SoleText returns the text that an agent of AIP gets as all of a message of JSON that says it in another way: as a JSON string, or as content of one item of text; false where it gets none,
// or the body itself.
func SoleText(m *agora.Message) (text []byte, is bool) {
	first := bytes.TrimLeft(m.Body, " \t\r\n")
	if m.Media != "" || len(first) == 0 || first[0] != '"' && first[0] != '{' {
		return nil, false
	}
	if first[0] == '{' {
		items, is := contentForm(first)
		if !is || len(items) != 1 || items[0].Mode != Mode_TEXT {
			return nil, false
		}
		return items[0].Data, true
	}
	return []byte(rawjson.Unquote(bytes.TrimRight(first, " \t\r\n"))), true
}

// numbered is an item, or a part of one, that may say by its number which it is a part of.
type numbered struct {
	Item
	number uint32 // 0 for none
}

func itemsIn(all []numbered) []Item {
	items := make([]Item, len(all))
	for n, i := range all {
		items[n] = i.Item
	}
	return items
}

// contentForm reads an object that is exactly {"content":[…]}, or exactly one of its items of bytes. Most objects are told by their first key.
func contentForm(raw []byte) (items []numbered, is bool) {
	o := rawjson.NewObject(raw, maxDepth)
	if !o.NextKey() {
		return nil, false
	}
	switch string(o.Name()) {
	case "media", "data", "item":
		i, ok := piece(raw)
		return []numbered{i}, ok && i.Mode != Mode_TEXT
	case "content":
	default:
		return nil, false
	}
	if !o.Pass() || o.Val[0] != '[' {
		return nil, false
	}
	list := o.Val
	if o.Next() || !o.End() {
		return nil, false
	}
	for l := rawjson.NewList(list, maxDepth); l.Next(); {
		i, ok := piece(l.Val)
		if !ok || len(items) == MaxItems {
			return nil, false
		}
		items = append(items, i)
	}
	return items, len(items) > 0
}

// piece reads an object that is exactly {"text":…} or {"media":…,"data":…}, which may have an "item".
func piece(raw []byte) (i numbered, ok bool) {
	var text, media, data []byte
	members := 0
	o := rawjson.NewObject(raw, maxDepth)
	for o.Next() {
		members++
		switch string(o.Name()) {
		case "text":
			text = o.Val
		case "media":
			media = o.Val
		case "data":
			data = o.Val
		case "item":
			n, ok := rawjson.Integer(o.Val, 1, 1<<32)
			if !ok || i.number != 0 {
				return i, false
			}
			i.number, members = uint32(n), members-1
		}
	}
	switch {
	case !o.End():
		return i, false
	case members == 1 && isString(text) && i.number == 0:
		return numbered{Item{Mode_TEXT, []byte(rawjson.Unquote(text))}, 0}, true
	case members == 2 && isString(media) && isString(data):
		i.Mode = ModeOf(rawjson.Unquote(media))
		i.Data, ok = unbase64(data[1 : len(data)-1])
		return i, ok
	}
	return i, false
}

func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// unbase64 returns what a JSON string, without its quotes, is the base64 of, where it is spelt as that is written.
func unbase64(text []byte) (data []byte, ok bool) {
	if bytes.IndexByte(text, '\\') >= 0 { // some write a slash as \/
		text = []byte(rawjson.Unquote(slices.Concat([]byte{'"'}, text, []byte{'"'})))
	}
	if bytes.ContainsAny(text, "\r\n") { // which the decoder would pass over
		return nil, false
	}
	data, err := base64.StdEncoding.Strict().AppendDecode(slices.Grow([]byte{}, base64.StdEncoding.DecodedLen(len(text))), text)
	return data, err == nil
}
