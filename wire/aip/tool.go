package aip

import (
	"bytes"
	"cmp"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agora-relay/agora"
)

// ToolCall is a call of a tool, as other dialects have it.
type ToolCall struct {
	Name      string
	Arguments json.RawMessage // any JSON; nil for none
}

// Call returns what the request calls. INVALID_REQUEST where it names no tool, or its arguments are neither empty nor JSON. The arguments are a slice of the request.
func (e *ToolEnvelope) Call() (ToolCall, error) {
	if len(e.Tool) == 0 {
		return ToolCall{}, agora.Errorf(agora.InvalidRequest, "tool_name is empty")
	}
	c := ToolCall{Name: string(e.Tool)}
	if arguments := bytes.Trim(e.Arguments, " \t\r\n"); len(arguments) > 0 {
		if !isJSON(arguments) {
			return ToolCall{}, agora.Errorf(agora.InvalidRequest, "arguments are no JSON, or nested deeper than %d", maxDepth)
		}
		c.Arguments = arguments
	}
	return c, nil
}

// AppendToolRequest appends the ToolRequest, encoded, that a call is to a toolbox; no arguments are {}.
func AppendToolRequest(dst []byte, r Route, session string, c ToolCall) []byte {
	dst = appendRoute(dst, r, session)
	dst = appendText(dst, fieldTool, c.Name)
	if c.Arguments == nil {
		return appendText(dst, fieldArguments, "{}")
	}
	return appendText(dst, fieldArguments, c.Arguments)
}

func appendRoute(dst []byte, r Route, session string) []byte {
	dst = appendText(dst, fieldSender, r.Sender)
	dst = appendText(dst, fieldReceiver, r.Receiver)
	return appendText(dst, fieldSession, session)
}

// ToolResult returns what an encoded ToolResponse says: the whole message that is the answer, whose body may be nil and may be a slice of raw, or the error that the toolbox says. It
// does not tell which code that has: it is STREAM_ABORTED. Nor is it the error of a ToolResponse that is malformed, which is the second.
func ToolResult(raw []byte) (m agora.Message, failed *agora.Error, err error) {
	isError, text := false, []byte(nil)
	f := fields{rest: raw}
	for f.next() {
		switch f.number {
		case fieldIsError:
			if f.kind == protowire.VarintType {
				isError = protowire.DecodeBool(f.varint)
			}
		case fieldErrorText:
			f.text(&text)
		}
	}
	items, bad := contentOf(raw, fieldToolContent)
	if f.err != nil {
		bad = f.err
	}
	if bad != nil {
		return m, nil, &agora.Error{Code: agora.StreamAborted, Message: "the toolbox's response is malformed", Cause: bad}
	}
	if isError {
		return m, agora.Errorf(agora.StreamAborted, "%s", toolError(text, items)), nil
	}
	m.Kind = agora.Reply
	if len(items) > 0 {
		m.Body = AppendPayload(nil, items)
	}
	return m, nil, nil
}

// toolError returns why a tool has failed, in its own words where it has some.
func toolError(text []byte, items []Item) string {
	for _, i := range items {
		if len(text) == 0 && i.Mode == Mode_TEXT {
			text = i.Data
		}
	}
	if len(text) == 0 {
		return "The tool has failed"
	}
	return bounded(string(text), maxTextOfAnError)
}

// ToolAnswer gathers the answer of a tool of another dialect, which may come in parts, for one ToolResponse.
type ToolAnswer struct {
	Most int // bytes of content that are gathered; MaxMessage if 0

	join  joiner
	items []Item
	size  int
	open  bool // the last item is text of chunks, behind which more may come
}

// Add adds a part of the answer: a whole message, or the start, a chunk or the end of a stream. Text that comes in chunks is put together. MESSAGE_TOO_LARGE where there is too much of
// it; and the error that the cancel, or the abort, of a stream means.
func (a *ToolAnswer) Add(m *agora.Message) error {
	most := cmp.Or(a.Most, MaxMessage)
	a.join.most = most
	var items []Item
	switch m.Part {
	case agora.Cancel, agora.Abort:
		return Ending(m)
	case agora.Chunk:
		var err error
		if items, err = a.join.add(m); err != nil {
			return err
		}
	default:
		a.gather(a.join.flush(), true)
		a.open, items = false, ItemsOf(m)
	}
	a.gather(items, m.Part == agora.Chunk)
	if a.size > most {
		return agora.Errorf(agora.MessageTooLarge, "the tool's answer has more than %d bytes", most)
	}
	return nil
}

// gather adds content; text to the text before it, where both are of chunks.
func (a *ToolAnswer) gather(items []Item, chunked bool) {
	for _, i := range items {
		a.size += len(i.Data)
		more := chunked && i.Mode == Mode_TEXT
		if more && a.open {
			last := &a.items[len(a.items)-1]
			last.Data = append(last.Data, i.Data...)
			continue
		}
		i.Data = i.Data[:len(i.Data):len(i.Data)] // which is not to be written behind
		a.items, a.open = append(a.items, i), more
	}
}

// Append appends the ToolResponse, encoded, that says what was gathered.
func (a *ToolAnswer) Append(dst []byte, r Route, session string) []byte {
	dst = appendRoute(dst, r, session)
	return appendItems(dst, fieldToolContent, append(a.items, a.join.flush()...))
}

// AppendToolError appends the ToolResponse, encoded, that says that a tool has answered with an error.
func AppendToolError(dst []byte, r Route, session string, err error) []byte {
	dst = appendRoute(dst, r, session)
	dst = protowire.AppendTag(dst, fieldIsError, protowire.VarintType)
	dst = protowire.AppendVarint(dst, 1)
	e := agora.AsError(err)
	return appendText(dst, fieldErrorText, cmp.Or(e.Message, string(e.Code)))
}
