package tools

import (
	"slices"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// Asked is a call of a tool.
type Asked struct {
	Caller    agora.AgentID // who calls it
	Addressee agora.AgentID // whose tool it is
	Parent    string        // the request in whose name; may be empty
	Tool      string
}

// Allows returns nil where the tasks that a caller was given let it call a tool: open are those that it was given and
// has not done. A call that names a task of the addressee's is held to that; one that names none, or an unknown one,
// must be what some task of the addressee's allows, as else who leaves out the name would lift the limit. Without a
// task of the addressee's everything is allowed. Else FORBIDDEN, which names the tool.
func Allows(open []presence.Execute, q Asked) error {
	var held, some bool
	for _, e := range open {
		if e.Callee != q.Caller || e.Caller != q.Addressee {
			continue
		}
		may := !e.Limited || slices.Contains(e.Tools, q.Tool)
		if q.Parent != "" && e.Request == q.Parent {
			return forbid(may, q.Tool)
		}
		held, some = true, some || may
	}
	return forbid(!held || some, q.Tool)
}

func forbid(may bool, tool string) error {
	if may {
		return nil
	}
	return agora.Errorf(agora.Forbidden, "tool '%s' is not among the allowed tools", clip(tool))
}
