package member

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// payloadOf returns a result as the payload of a reply, each value as the server has spelled it: what it says as JSON
// where it has such, else its text as a string, where that is all. One image, or other bytes, is {"media","data"} in
// base64; what is more than one content is {"content":[…]}, each as MCP has it. A result that is an error is one.
func payloadOf(r *mcp.CallToolResult) (json.RawMessage, error) {
	said, ok := contentsOf(written(r.Meta))
	switch {
	case !ok:
		return nil, agora.Errorf(agora.StreamAborted, "the tool's answer is malformed")
	case r.IsError:
		return nil, agora.Errorf(agora.StreamAborted, "%s", said.errorText())
	case r.NeedsInput():
		return nil, agora.Errorf(agora.StreamAborted, "the tool asks for what no caller can give it")
	}
	b := said.payload()
	if len(b) > MaxResult {
		return nil, agora.Errorf(agora.MessageTooLarge, "the tool's answer has more than %d bytes", MaxResult)
	}
	return b, nil
}

// contents is what a result says, as the server has spelled it.
type contents struct {
	all        []byte    // a list; nil for none
	parts      []content // of that list
	structured []byte    // nil for none
}

// content is one part of a result.
type content struct {
	kind             string
	text, mime, data []byte // strings as they are spelled; nil for none
}

// contentsOf returns what a result says; ok is false where that is malformed. Nothing is a result that says nothing.
func contentsOf(result []byte) (c contents, ok bool) {
	c.all, c.structured = rawjson.Member(result, "content"), rawjson.Member(result, "structuredContent")
	if string(c.structured) == "null" {
		c.structured = nil
	}
	if c.all == nil || string(c.all) == "null" {
		return c, true
	}
	l := rawjson.NewList(c.all, deepest)
	for l.Next() {
		p, ok := contentOf(l.Val)
		if !ok {
			return c, false
		}
		c.parts = append(c.parts, p)
	}
	return c, !l.Failed()
}

// contentOf returns one part; ok is false where what it is does not hold for it.
func contentOf(part []byte) (p content, ok bool) {
	kind := rawjson.Member(part, "type")
	if !isText(kind) {
		return p, false
	}
	p = content{rawjson.Unquote(kind), rawjson.Member(part, "text"), rawjson.Member(part, "mimeType"), rawjson.Member(part, "data")}
	switch p.kind {
	case "text":
		return p, isText(p.text)
	case "image", "audio":
		return p, isText(p.mime) && isText(p.data) && isBase64(rawjson.Unquote(p.data))
	}
	return p, true
}

func isText(value []byte) bool { return len(value) > 0 && value[0] == '"' }

func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil
}

// payload returns the payload that says it.
func (c *contents) payload() json.RawMessage {
	other := slices.ContainsFunc(c.parts, func(p content) bool { return p.kind != "text" })
	switch {
	case c.structured != nil && !other:
		return c.structured
	case c.structured != nil:
		return rawjson.With(c.list(), "structuredContent", c.structured)
	case len(c.parts) == 0:
		return json.RawMessage(`""`)
	case len(c.parts) > 1:
		return c.list()
	}
	switch p := c.parts[0]; p.kind {
	case "text":
		return p.text
	case "image", "audio":
		return rawjson.With(rawjson.With([]byte("{}"), "media", p.mime), "data", p.data)
	}
	return c.list()
}

// list returns the parts as MCP has them.
func (c *contents) list() []byte { return rawjson.With([]byte("{}"), "content", c.all) }

// errorText returns why a tool has failed, in its own words where it has some.
func (c *contents) errorText() string {
	var texts []string
	for _, p := range c.parts {
		if p.kind == "text" {
			texts = append(texts, rawjson.Unquote(p.text))
		}
	}
	if text := strings.TrimSpace(strings.Join(texts, "\n")); text != "" {
		return cut(text, maxText)
	}
	if c.structured != nil {
		return cut(string(c.structured), maxText)
	}
	return "the tool has failed"
}
