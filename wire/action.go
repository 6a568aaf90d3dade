package wire

import (
	"encoding/json"

	"github.com/agora-relay/agora/internal/rawjson"
)

// What an agent is asked for by mail beside a plain request: the payload names an action. PROTOCOL.md, "Actions".

// AppendHandoff appends the payload of the action "handoff". params and input may be nil: then the one is {} and the other null. Both keep their bytes.
func AppendHandoff(dst []byte, requestID, method, path string, params, input json.RawMessage) []byte {
	dst = appendAction(dst, "handoff", requestID)
	dst = rawjson.AppendString(append(dst, `,"method":`...), method)
	dst = rawjson.AppendString(append(dst, `,"path":`...), path)
	dst = appendOr(append(dst, `,"params":`...), params, "{}")
	dst = appendOr(append(dst, `,"input_data":`...), input, "null")
	return append(dst, '}')
}

// AppendToolCall appends the payload of the action "call_tool". arguments may be nil: then they are {}. They keep their bytes.
func AppendToolCall(dst []byte, requestID, tool string, arguments json.RawMessage) []byte {
	dst = appendAction(dst, "call_tool", requestID)
	dst = rawjson.AppendString(append(dst, `,"tool_name":`...), tool)
	dst = appendOr(append(dst, `,"arguments":`...), arguments, "{}")
	return append(dst, '}')
}

func appendAction(dst []byte, action, requestID string) []byte {
	dst = rawjson.AppendString(append(dst, `{"action":`...), action)
	return rawjson.AppendString(append(dst, `,"request_id":`...), requestID)
}

func appendOr(dst []byte, value json.RawMessage, none string) []byte {
	if value == nil {
		return append(dst, none...)
	}
	return append(dst, value...)
}
