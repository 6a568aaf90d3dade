package wire

import (
	"bytes"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// The actions of payloads at which edges look before a request is stored, whatever door it came by and whatever dialect
// its addressee has.
const (
	ActionCallTool = "call_tool" // calls a tool
	ActionExecute  = "execute"   // gives a task, and may limit the tools that are called for it
	ActionHandoff  = "handoff"   // is a request for a path, which may be that of a tool
)

// counting are the members that count beside the action, by the action.
var counting = map[string][]string{
	ActionCallTool: {"tool_name", "arguments"},
	ActionExecute:  {"allowed_tools"},
	ActionHandoff:  {"method", "path", "params", "input_data"},
}

// maxAsked bounds the nesting of payloads here; frames, envelopes and bodies are bounded more tightly.
const maxAsked = 1 << 10

// Asks returns what the payload of a request asks for, where that is one of the actions above; "" for all else. It
// decides for every door, and every component of Agora that calls tools decides by [ActionOf] and [ToolCallOf], which
// find no action that Asks does not find. Most payloads are told at a glance.
//
// An error is an INVALID_REQUEST *[agora.Error]: the payload is an action to some readers and none, or another one, to
// others, as a key stands twice, or is spelt in letters of another case, for which many decoders take it nevertheless.
func Asks(payload []byte) (action string, err error) {
	if first := bytes.TrimLeft(payload, " \t\r\n"); len(first) == 0 || first[0] != '{' || !MayAsk(first) {
		return "", nil
	}
	o, n, odd := rawjson.NewObject(payload, maxAsked), 0, ""
	for o.Next() {
		key := o.Name()
		if !bytes.EqualFold(key, []byte("action")) {
			continue
		}
		named := guarded(o.Val)
		if n++; named == "" {
			continue
		}
		if action = named; string(key) != "action" {
			odd = string(key)
		}
	}
	switch {
	case !o.End():
		return "", agora.Errorf(agora.InvalidRequest, "the payload is nested too deeply to be looked at")
	case action == "":
		return "", nil
	case n > 1:
		return "", agora.Errorf(agora.InvalidRequest, "action stands twice")
	case odd != "":
		return "", agora.Errorf(agora.InvalidRequest, "action is spelt %.16q", odd)
	}
	return action, plainly(payload, counting[action])
}

// MayAsk reports at a glance whether bytes hold the name of one of the actions behind a quote, or an escape that may
// spell a letter of it.
func MayAsk(b []byte) bool {
	for i := 0; i < len(b); i++ {
		near := min(i+16, len(b)) // where quotes are close to each other, a call for each costs more than looking
		for i < near && b[i] != '"' {
			i++
		}
		if i == near {
			at := bytes.IndexByte(b[i:], '"')
			if at < 0 {
				break
			}
			i += at
		}
		if beginsAction(b[i+1:]) {
			return true
		}
	}
	return bytes.Contains(b, []byte(`\u`))
}

// beginsAction reports whether bytes begin with the name of one of the actions.
func beginsAction(b []byte) bool {
	if len(b) < len(ActionExecute) { // the shortest, as is the next
		return false
	}
	switch b[0] {
	case 'c':
		return len(b) >= len(ActionCallTool) && string(b[:len(ActionCallTool)]) == ActionCallTool
	case 'e':
		return string(b[:len(ActionExecute)]) == ActionExecute
	case 'h':
		return string(b[:len(ActionHandoff)]) == ActionHandoff
	}
	return false
}

// guarded returns the action that a value is; "" where it is none of them.
func guarded(raw []byte) string {
	if raw[0] != '"' {
		return ""
	}
	switch name := rawjson.Unquote(raw); name {
	case ActionCallTool, ActionExecute, ActionHandoff:
		return name
	}
	return ""
}

// plainly returns why the members that count can be read in two ways.
func plainly(payload []byte, members []string) error {
	seen := make([]bool, len(members))
	for o := rawjson.NewObject(payload, maxAsked); o.Next(); {
		key := o.Name()
		for i, name := range members {
			switch {
			case !bytes.EqualFold(key, []byte(name)):
			case string(key) != name:
				return agora.Errorf(agora.InvalidRequest, "%s is spelt %.16q", name, key)
			case seen[i]:
				return agora.Errorf(agora.InvalidRequest, "%s stands twice", name)
			default:
				seen[i] = true
			}
		}
	}
	return nil
}
