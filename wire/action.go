package wire

import (
	"encoding/json"

	"github.com/agora-relay/agora/internal/rawjson"
)

// maxDataDepth bounds the nesting of payloads and data here; [Limits] has bounded it before.
const maxDataDepth = 1024

// What an agent is asked for by mail beside a plain request: the payload names an action. PROTOCOL.md, "Actions".

// AppendHandoff appends the payload of the action "handoff". requestID may be empty, and is left out then. params and input may be nil: then the one is {} and the
// other null. Both keep their bytes.
func AppendHandoff(dst []byte, requestID, method, path string, params, input json.RawMessage) []byte {
	dst = appendAction(dst, "handoff", requestID)
	dst = rawjson.AppendString(append(dst, `,"method":`...), method)
	dst = rawjson.AppendString(append(dst, `,"path":`...), path)
	dst = appendOr(append(dst, `,"params":`...), params, "{}")
	dst = appendOr(append(dst, `,"input_data":`...), input, "null")
	return append(dst, '}')
}

// AppendToolCall appends the payload of the action "call_tool". requestID may be empty, and is left out then. arguments may be nil: then they are {}. They keep their bytes.
func AppendToolCall(dst []byte, requestID, tool string, arguments json.RawMessage) []byte {
	dst = appendAction(dst, "call_tool", requestID)
	dst = rawjson.AppendString(append(dst, `,"tool_name":`...), tool)
	dst = appendOr(append(dst, `,"arguments":`...), arguments, "{}")
	return append(dst, '}')
}

func appendAction(dst []byte, action, requestID string) []byte {
	dst = rawjson.AppendString(append(dst, `{"action":`...), action)
	if requestID == "" {
		return dst
	}
	return rawjson.AppendString(append(dst, `,"request_id":`...), requestID)
}

func appendOr(dst []byte, value json.RawMessage, none string) []byte {
	if value == nil {
		return append(dst, none...)
	}
	return append(dst, value...)
}

// ActionOf returns the action that a payload names; "" where it is no object or names none, or several.
func ActionOf(payload json.RawMessage) (action string) {
	var raw []byte
	o := rawjson.NewObject(payload, maxDataDepth)
	for o.Next() {
		if string(o.Name()) != "action" {
			continue
		}
		if raw != nil {
			return ""
		}
		raw = o.Val
	}
	if !o.End() || !isText(raw) {
		return ""
	}
	return rawjson.Unquote(raw)
}

// ToolCallOf returns the tool that a payload of the action "call_tool" calls, and its arguments, which may be nil; false where the payload is of no such
// action, or is ambiguous. The arguments are a slice of the payload.
func ToolCallOf(payload json.RawMessage) (tool string, arguments json.RawMessage, ok bool) {
	var action, name []byte
	o := rawjson.NewObject(payload, maxDataDepth)
	for o.Next() {
		var into *[]byte
		switch string(o.Name()) {
		case "action":
			into = &action
		case "tool_name":
			into = &name
		case "arguments":
			into = (*[]byte)(&arguments)
		default:
			continue
		}
		if *into != nil {
			return "", nil, false
		}
		*into = o.Val
	}
	if !o.End() || !isText(action) || !isText(name) || rawjson.Unquote(action) != "call_tool" {
		return "", nil, false
	}
	return rawjson.Unquote(name), arguments, true
}

// isText reports whether a value is a string of whole characters.
func isText(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' && !rawjson.Halved(raw) }
