package member

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agora-relay/agora"
)

// errorPayload returns the payload of a reply that says that there is no answer, and why.
func errorPayload(e *agora.Error) json.RawMessage {
	type said struct {
		Code    agora.Code `json:"code"`
		Message string     `json:"message"`
	}
	b, err := encode(map[string]said{"error": {e.Code, e.Message}})
	if err != nil {
		panic(err) // two strings can be encoded
	}
	return b
}

// failed returns why a call has failed, as its caller is told.
func failed(ctx context.Context, err error, limit time.Duration) *agora.Error {
	var told *agora.Error
	var said *jsonrpc.Error
	switch {
	case errors.As(err, &told):
		return told
	case errors.Is(err, errTooLarge) || errors.As(err, &said) && said.Code == codeTooLarge && said.Message == errTooLarge.Error():
		return agora.Errorf(agora.MessageTooLarge, "the tool's answer has more than %d bytes", MaxResult)
	case said != nil && said.Code != codeRejected:
		return refusal(said)
	case errors.Is(err, errSlow) || errors.Is(context.Cause(ctx), errSlow):
		return agora.Errorf(agora.Timeout, "the tool did not answer in %v", limit)
	case errors.Is(err, errEnded) || errors.Is(err, errNotHanded) || errors.Is(err, io.EOF):
		return agora.Errorf(agora.Unavailable, "the tool server has ended before it answered")
	case ctx.Err() != nil:
		return agora.Errorf(agora.Unavailable, "the agent is going away")
	}
	return &agora.Error{Code: agora.Unavailable, Message: "the tool server has not answered in order", Cause: err}
}

// codeRejected is the code of the error by which the library says that its transport has not taken a request.
const codeRejected = -32005

// refusal returns the error that a server has answered with instead of a result.
func refusal(e *jsonrpc.Error) *agora.Error {
	code := agora.StreamAborted
	switch e.Code {
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest:
		code = agora.InvalidRequest
	case jsonrpc.CodeMethodNotFound:
		code = agora.NotFound
	}
	return agora.Errorf(code, "%s", cmp.Or(cut(e.Message, maxText), "the tool has failed"))
}

// namedTools is how many tools an agent that asks for something else is told of.
const namedTools = 10

// onlyTools is the error for a request that calls no tool.
func (m *Member) onlyTools() *agora.Error {
	names, more := m.names(), ""
	if len(names) > namedTools {
		names, more = names[:namedTools], ", …"
	}
	if len(names) == 0 {
		return agora.Errorf(agora.InvalidRequest, "this agent answers nothing but calls of its tools, and has none")
	}
	return agora.Errorf(agora.InvalidRequest, "this agent answers nothing but calls of its tools: %s%s", strings.Join(names, ", "), more)
}

// names returns the names of the tools that stand in the directory.
func (m *Member) names() []string {
	m.toldMu.Lock()
	defer m.toldMu.Unlock()
	names := make([]string, len(m.told.Tools))
	for k, t := range m.told.Tools {
		names[k] = t.Name
	}
	return slices.Clip(names)
}
