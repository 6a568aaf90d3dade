package iat

import (
	"encoding/json"
	"strconv"

	"github.com/agora-relay/agora/wire"
)

// The actions that Agora reads (IAT §3 and §4), and those that it says.
const (
	ActionExecute  = wire.ActionExecute
	ActionThink    = "think"
	ActionCallTool = wire.ActionCallTool
	ActionLog      = "log"
	ActionDone     = "done"
	ActionApproval = "require_approval"
	ActionRegister = "register"

	ActionCancel        = "cancel"
	ActionStreamEnd     = "stream_end"
	ActionStreamAborted = "stream_aborted"
	ActionGap           = "gap"
	ActionReceipt       = "receipt"
	ActionReconnect     = "reconnect"
	ActionAck           = "ack"
)

// CheckAction checks the payload of a request, a notification or a response as its action wants it (IAT §4): required
// members are there, and all that are there are of their type; null in an optional one is as good as none. A key of the
// action that stands twice is refused. An action that Agora does not know passes, and so does a payload without one,
// and every chunk. An error is a *[Fault] with the code INVALID_REQUEST.
func CheckAction(e *Envelope) error {
	if e.Type == Chunk {
		return nil
	}
	if err := e.misplaced(); err != nil {
		return err
	}
	switch e.Action {
	case ActionExecute:
		_, err := e.Execute()
		return err
	case ActionCallTool:
		_, err := e.ToolCall()
		return err
	case ActionRegister:
		_, err := e.Registration()
		return err
	}
	p := e.reader()
	switch e.Action {
	case ActionThink:
		p.read(p.string("thought_text"))
	case ActionLog:
		p.read(p.string("level"), p.string("message"))
	case ActionDone:
		p.read(p.string("result_summary"), p.object("usage_stats"))
	}
	return p.err()
}

// misplaced returns what refuses an action that is checked as one whole request, and nothing else: so nobody is given a
// task, or has a tool called, past the checks.
func (e *Envelope) misplaced() error {
	p := e.reader()
	switch e.Action {
	case ActionExecute, ActionCallTool, ActionApproval:
		if e.Type == Notification && e.Action != ActionExecute { // a task may be given to the one who says nothing of it
			p.refuse(paths[fType], "must be request: "+e.Action+" waits for an answer")
		} else if e.Stream {
			p.refuse(paths[fStream], "must not be true: "+e.Action+" is one whole request")
		}
	}
	return p.err()
}

// Execute is what the action execute asks for (IAT §4).
type Execute struct {
	Query   string
	Allowed []string // the tools that may be called for it, if Limited; else all
	Limited bool     // allowed_tools is there, if only as an empty list
}

// Execute reads the payload of the action execute. Errors are those of [CheckAction].
func (e *Envelope) Execute() (Execute, error) {
	var x Execute
	p := e.reader()
	p.read(
		member{key: "query", must: true, read: p.passing(&x.Query)},
		member{key: "context_fragments", read: func(path string, raw []byte) { p.each(path, raw, func(string, []byte) {}) }},
		member{key: "allowed_tools", read: func(path string, raw []byte) {
			x.Limited = true
			x.Allowed = []string{}
			p.each(path, raw, func(path string, raw []byte) { x.Allowed = append(x.Allowed, p.text(path, raw, 0)) })
		}},
	)
	return x, p.err()
}

// ToolCall is what the action call_tool asks for (IAT §4).
type ToolCall struct {
	Name      string
	Arguments json.RawMessage // an object, a slice of the payload; nil where there is none
}

// ToolCall reads the payload of the action call_tool. Errors are those of [CheckAction].
func (e *Envelope) ToolCall() (ToolCall, error) {
	var c ToolCall
	p := e.reader()
	p.read(
		member{key: "tool_name", must: true, read: func(path string, raw []byte) {
			if c.Name = p.text(path, raw, 0); c.Name == "" {
				p.refuse(path, "is empty")
			}
		}},
		member{key: "arguments", read: func(path string, raw []byte) { c.Arguments = p.isObject(path, raw) }},
	)
	return c, p.err()
}

// Ack reads the payload of the action ack: the position up to which everything has arrived (extension). An error is as
// that of [CheckAction].
func (e *Envelope) Ack() (seq uint64, err error) {
	p := e.reader()
	p.read(member{key: "seq", must: true, read: func(path string, raw []byte) {
		n, bad := strconv.ParseUint(string(raw), 10, 53)
		if seq = n; bad != nil {
			p.refuse(path, "must be an integer below 2^53")
		}
	}})
	return seq, p.err()
}

// Approved reads payload.approved of a response to require_approval (IAT §3.3, R06). It answers ok=false where that is
// neither true nor false, or stands twice.
func Approved(payload json.RawMessage) (approved, ok bool) {
	p := reader{payload: payload}
	if len(payload) == 0 || payload[0] != '{' {
		return false, false
	}
	p.read(member{key: "approved", must: true, read: func(_ string, raw []byte) {
		approved = raw[0] == 't'
		ok = approved || raw[0] == 'f'
	}})
	if p.wrong != nil {
		return false, false
	}
	return approved, ok
}
