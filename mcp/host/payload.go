package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora/internal/rawjson"
)

// body returns the payload of what is said: {"text":…}, or any JSON, both as they were spelled. Its error is for a
// model.
func body(text spoken, payload anything) (json.RawMessage, error) {
	switch {
	case rawjson.Deeper(payload, maxLevels):
		return nil, fmt.Errorf("INVALID_REQUEST: the payload is nested more than %d deep", maxLevels)
	case len(payload) == 0 && len(text) == 0:
		return nil, errNothingSaid
	case len(text) == 0:
		return json.RawMessage(payload), nil
	case len(payload) == 0:
		payload = anything("{}")
	case payload[0] != '{':
		return nil, errors.New("give either text or payload: text can stand beside a payload that is an object alone")
	case rawjson.Member(payload, "text") != nil:
		return nil, errors.New("the payload has a text already: leave out one of the two")
	}
	return rawjson.With(payload, "text", text), nil
}

// maxLevels is how deeply what a model says may be nested: edges refuse a frame that has more, unread, so that nobody
// would learn what has become of it.
const maxLevels = 63

// encode returns a result as JSON in which the values of others keep their bytes, but for white space between these.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// asWritten is a result whose structure keeps its bytes: the library would escape what HTML could take for its own.
type asWritten struct{ *mcp.CallToolResult }

// MarshalJSON returns the result as the library does, and the structure behind that.
func (r asWritten) MarshalJSON() ([]byte, error) {
	rest := *r.CallToolResult
	said, ok := rest.StructuredContent.(json.RawMessage)
	if !ok {
		return json.Marshal(r.CallToolResult)
	}
	rest.StructuredContent = nil
	b, err := json.Marshal(&rest)
	if err != nil {
		return nil, err
	}
	return rawjson.With(b, "structuredContent", said), nil
}

// spellAsWritten has the structures of results keep their bytes.
func spellAsWritten(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		r, err := next(ctx, method, req)
		if said, ok := r.(*mcp.CallToolResult); ok && said != nil {
			return asWritten{said}, err
		}
		return r, err
	}
}
