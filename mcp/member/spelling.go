package member

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora/internal/rawjson"
)

// asWritten is the member of _meta in which a session carries what a server has said as it has written it: the library
// decodes it, and numbers lose digits, members their order, and text half surrogate pairs.
const asWritten = "agora/as-written"

// keepSpelling returns a message of a server in which the result of a tool, and the schemas of tools, also stand as
// they were written. Any other message stays as it is.
func keepSpelling(message []byte) []byte {
	result := rawjson.Member(message, "result")
	var kept []byte
	switch {
	case rawjson.Member(result, "content") != nil || rawjson.Member(result, "structuredContent") != nil:
		kept = rawjson.With(carrying(result, result, "content", "structuredContent"), "content", []byte("[]"))
	case rawjson.Member(result, "tools") != nil:
		kept = rawjson.With(rawjson.Without(result, "tools"), "tools", keepSchemas(rawjson.Member(result, "tools")))
	default:
		return message
	}
	return rawjson.With(rawjson.Without(message, "result"), "result", kept)
}

// carrying returns an object without some of its members that carries how something is written.
func carrying(object, written []byte, without ...string) []byte {
	meta := append(rawjson.AppendString([]byte(`{"`+asWritten+`":`), string(written)), '}')
	return rawjson.With(rawjson.Without(object, append(without, "_meta")...), "_meta", meta)
}

// keepSchemas returns a list of tools that carry their schemas.
func keepSchemas(tools []byte) []byte {
	if tools[0] != '[' {
		return tools
	}
	out := []byte{'['}
	for l := rawjson.NewList(tools, deepest); l.Next(); {
		if len(out) > 1 {
			out = append(out, ',')
		}
		tool := l.Val
		if schema := rawjson.Member(tool, "inputSchema"); schema != nil {
			tool = carrying(tool, schema)
		}
		out = append(out, tool...)
	}
	return append(out, ']')
}

// deepest is how deeply values are looked into, which is as deeply as anything decodes them.
const deepest = 10000

// written returns what a server has said as it has written it; nil where it is not known.
func written(meta mcp.Meta) json.RawMessage {
	text, ok := meta[asWritten].(string)
	if !ok {
		return nil
	}
	return json.RawMessage(text)
}

// spellingEvents are server-sent events whose messages carry how they are written. One goroutine reads it.
type spellingEvents struct {
	io.ReadCloser
	in   *bufio.Reader
	data []byte // of the event that is being read
	some bool   // it has data
	out  []byte // what was not read yet
	err  error  // behind that
}

func newSpellingEvents(body io.ReadCloser) *spellingEvents {
	return &spellingEvents{ReadCloser: body, in: bufio.NewReader(body)}
}

// Read returns what there is, an event at once when it is whole. An event of more than maxEvent bytes is errTooLarge.
func (e *spellingEvents) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.line()
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// line takes a line in: data is kept until a line comes that is none.
func (e *spellingEvents) line() {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		line = append(line, part...)
		if len(e.data)+len(line) > maxEvent {
			e.err = errTooLarge
			return
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		e.err = err
		break
	}
	if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok && e.err == nil {
		if e.some {
			e.data = append(e.data, '\n')
		}
		e.data, e.some = append(e.data, bytes.TrimPrefix(data, []byte(" "))...), true
		return
	}
	if e.some {
		e.out = append(append(append(e.out, "data: "...), oneLine(e.data)...), '\n')
		e.data, e.some = e.data[:0], false
	}
	e.out = append(e.out, line...)
}

// oneLine returns the message of an event in a line.
func oneLine(data []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return bytes.ReplaceAll(data, []byte("\n"), []byte("\ndata: "))
	}
	return keepSpelling(b.Bytes())
}
