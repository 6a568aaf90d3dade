package member

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
)

// payloadOf returns a result as the payload of a reply: what it says as JSON where it has such, else its text as a string, where that is all. One image, or other bytes, is {"media","data"} in base64; what is more
// than one content is {"content":[…]}, each as MCP has it. A result that is an error is one.
func payloadOf(r *mcp.CallToolResult) (json.RawMessage, error) {
	if r.IsError {
		return nil, agora.Errorf(agora.StreamAborted, "%s", errorText(r))
	}
	if r.NeedsInput() {
		return nil, agora.Errorf(agora.StreamAborted, "the tool asks for what no caller can give it")
	}
	b, err := encode(said(r))
	if err != nil {
		return nil, agora.Errorf(agora.StreamAborted, "the tool's answer is malformed")
	}
	if len(b) > MaxResult {
		return nil, agora.Errorf(agora.MessageTooLarge, "the tool's answer has more than %d bytes", MaxResult)
	}
	return b, nil
}

// media is bytes of a kind, as JSON has them.
type media struct {
	Media string `json:"media"`
	Data  []byte `json:"data"`
}

// contents is a result of several parts, or of one that has more than a kind and bytes.
type contents struct {
	Content    []mcp.Content `json:"content"`
	Structured any           `json:"structuredContent,omitempty"`
}

// said returns what a result says, as a value to encode.
func said(r *mcp.CallToolResult) any {
	texts, all := textsOf(r.Content)
	switch {
	case r.StructuredContent != nil && all:
		return structured(r.StructuredContent, texts)
	case r.StructuredContent != nil:
		return contents{r.Content, r.StructuredContent}
	case len(r.Content) == 0:
		return ""
	case len(r.Content) == 1:
		switch c := r.Content[0].(type) {
		case *mcp.TextContent:
			return c.Text
		case *mcp.ImageContent:
			return media{c.MIMEType, c.Data}
		case *mcp.AudioContent:
			return media{c.MIMEType, c.Data}
		}
	}
	return contents{Content: r.Content}
}

// textsOf returns the texts among contents, and whether there is nothing else.
func textsOf(all []mcp.Content) (texts []string, alone bool) {
	for _, c := range all {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return texts, len(texts) == len(all)
}

// structured returns a structured result. It was decoded on its way here, and large numbers have lost digits: where the one text beside it is the same JSON, as servers are to have it, it is
// taken as that was written.
func structured(v any, texts []string) any {
	if len(texts) != 1 {
		return v
	}
	var same any
	if json.Unmarshal([]byte(texts[0]), &same) != nil || !reflect.DeepEqual(same, v) {
		return v
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(texts[0])) != nil {
		return v
	}
	return json.RawMessage(b.Bytes())
}

// errorText returns why a tool has failed, in its own words where it has some.
func errorText(r *mcp.CallToolResult) string {
	texts, _ := textsOf(r.Content)
	if text := strings.TrimSpace(strings.Join(texts, "\n")); text != "" {
		return cut(text, maxText)
	}
	if r.StructuredContent != nil {
		if b, err := encode(r.StructuredContent); err == nil {
			return cut(string(b), maxText)
		}
	}
	return "the tool has failed"
}
