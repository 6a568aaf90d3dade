package iat

import (
	"context"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire/iat"
)

// mayAsk looks at a request before it is stored: the cluster itself takes few, a call of a tool must fit, and an execute is noted, as it says which tools may be
// called in its name.
func (s *saying) mayAsk(ctx context.Context, e *iat.Envelope) error {
	if agora.AgentID(e.To) == agora.Cluster && e.Action != iat.ActionApproval {
		return &iat.Fault{Err: agora.Errorf(agora.InvalidRequest, "the cluster itself takes %s and %s alone", iat.ActionRegister, iat.ActionApproval), Path: "/header/to", ID: e.ID}
	}
	switch e.Action {
	case iat.ActionCallTool:
		return s.mayCall(ctx, e)
	case iat.ActionExecute:
		x, err := e.Execute()
		if err != nil {
			return err
		}
		return s.door.cfg.Tools.Give(ctx, presence.Execute{
			Tenant: s.tenant(), Callee: agora.AgentID(e.To), Caller: s.as, Request: e.ID, Tools: x.Allowed, Limited: x.Limited,
			Until: s.door.now().Add(s.door.wait(e)),
		})
	}
	return nil
}

// mayCall checks a call of a tool.
func (s *saying) mayCall(ctx context.Context, e *iat.Envelope) error {
	t, err := e.ToolCall()
	if err != nil {
		return err
	}
	caller, err := known(s.actor.Directory().Own(ctx, s.as))
	if err != nil {
		return err
	}
	callee, err := known(s.actor.Directory().Addressee(ctx, agora.AgentID(e.To)))
	if err != nil {
		return err
	}
	caller.ID, callee.ID = s.as, agora.AgentID(e.To)
	err = s.door.cfg.Tools.CheckTool(ctx, tools.Call{
		Tenant: s.tenant(), Caller: caller, Callee: callee, Parent: e.Parent, Tool: t.Name, Arguments: t.Arguments,
	})
	if r, ok := errors.AsType[*tools.Refusal](err); ok {
		return &iat.Fault{Err: r.Err, Path: "/payload/arguments" + r.Path, ID: e.ID}
	}
	return err
}

// known returns a card; an empty one of an agent that is not in the directory, whose mailbox may be there all the same.
func known(a agora.Agent, err error) (agora.Agent, error) {
	if e, ok := errors.AsType[*agora.Error](err); ok && e.Code == agora.AgentNotFound {
		return agora.Agent{}, nil
	}
	return a, err
}
