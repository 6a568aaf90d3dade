package stdio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agora-relay/agora/internal/rawjson"
)

// maxDepth is how deeply the values of a message may stand in each other: as deeply as the library takes them.
const maxDepth = 1000

// unreadable says why a line is no JSON; empty where it is.
func unreadable(text []byte) string {
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return "the line begins with a byte order mark: write UTF-8 without one"
	case !utf8.Valid(text):
		return "the line is not valid UTF-8"
	case json.Valid(text):
		return ""
	case json.NewDecoder(bytes.NewReader(text)).Decode(new(json.RawMessage)) == nil:
		return "behind the message stands something else: write one message to a line"
	}
	return "the line is not valid JSON"
}

// parse returns the message that valid JSON is, and how its id is spelled. fault says why it is none.
func parse(text []byte) (m jsonrpc.Message, id []byte, fault string) {
	var method, named, ended bool
	version := ""
	o := rawjson.NewObject(text, maxDepth)
	for o.Next() {
		switch string(o.Name()) {
		case "id":
			id = o.Val
		case "method":
			method, named = true, o.Val[0] == '"'
		case "jsonrpc":
			version = string(o.Val)
		case "result", "error":
			ended = true
		}
	}
	known, ok := idOf(id)
	switch {
	case o.Failed():
		return nil, nil, "a message is a JSON object, in which values stand in each other 1000 times at most"
	case id != nil && !ok:
		return nil, nil, "an id is a string or a whole number"
	case !method && (!ended || id == nil):
		return nil, nil, "a message has a method, or the id and the result of a call"
	case version != `"2.0"`:
		return nil, nil, `a message says "jsonrpc":"2.0"`
	case method && !named:
		return nil, nil, "a method is a string"
	}
	m, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, nil, err.Error()
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		r.ID = known
	}
	return m, id, ""
}

// exact bounds the numbers that the library holds exactly.
const exact = 1 << 53

// idOf returns the id by which the session knows a call: the host's own or, where the library would spell that
// otherwise, one that stands for it. ok is false where it is no id.
func idOf(raw []byte) (id jsonrpc.ID, ok bool) {
	if len(raw) == 0 {
		return id, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	var known any
	switch {
	case raw[0] == '"' && !rawjson.Halved(raw):
		known = rawjson.Unquote(raw)
	case err == nil && -exact <= n && n <= exact:
		known = float64(n)
	case raw[0] == '"' || whole(raw):
		known = "\x00" + string(raw)
	}
	id, err = jsonrpc.MakeID(known)
	return id, err == nil && known != nil
}

// whole reports whether a JSON number is spelled as a whole one.
func whole(raw []byte) bool {
	digits := bytes.TrimPrefix(raw, []byte("-"))
	return len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0
}

// respelled returns an encoded answer with the id as the host has spelled it.
func respelled(text, id []byte) []byte {
	for o := rawjson.NewObject(text, maxDepth+1); o.Next(); {
		if string(o.Key) == "id" {
			return slices.Concat(text[:o.ValAt], id, text[o.ValAt+len(o.Val):])
		}
	}
	return text
}

// refusal returns what is answered to what is no message: an error whose id is null, as nobody can say whose it is.
func refusal(code int, format string, args ...any) []byte {
	why := rawjson.AppendString(nil, fmt.Sprintf(format, args...))
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%s}}`, code, why)
}
