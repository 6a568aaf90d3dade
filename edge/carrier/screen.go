package carrier

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/aip"
	"github.com/agora-relay/agora/wire/iat"
	"github.com/agora-relay/agora/wire/p2p"
)

// Screen decides what a request means by its content alone, whatever door it came by and whatever dialect its addressee
// has, and holds it to that before it is stored: a call of a tool to the checks of [Carriers.CheckTool], a task to
// being noted, with the tools that it allows. It is what [edge.Node.Screens] is given, once. m is a whole request, or
// the beginning of a stream, whose body is JSON. All else passes untouched, and nearly all at a glance. Errors are
// those of CheckTool, and INVALID_REQUEST for a payload that two readers may take for two things, for a call that is no
// whole request, and for one that can't be read.
func (cs *Carriers) Screen(ctx context.Context, by *edge.Actor, m *agora.Message) error {
	body := m.Body
	action, err := wire.Asks(body)
	text := false // an agent of AIP alone reads it so
	if action == "" && err == nil && wire.MayAsk(m.Body) {
		if body, text = aip.SoleText(m); text {
			action, err = wire.Asks(body)
		}
	}
	if action == "" && err == nil {
		return nil
	}
	a := asked{screen: cs, by: by, m: m, action: action, body: body}
	if err := a.find(ctx); err != nil {
		return err
	}
	if text && a.callee.DialectName() != aip.Dialect {
		return nil
	}
	if err != nil {
		return err
	}
	return a.hold(ctx)
}

// asked is a request that asks for something at which edges look.
type asked struct {
	screen *Carriers
	by     *edge.Actor
	m      *agora.Message
	action string
	body   []byte      // what says so
	callee agora.Agent // its id alone where it is away
	gone   bool        // it is not in the directory
}

// find looks up who is asked.
func (a *asked) find(ctx context.Context) (err error) {
	a.callee, err = known(a.by.Directory().Addressee(ctx, a.m.To.Agent))
	a.gone, a.callee.ID = a.callee.ID == "", a.m.To.Agent
	return err
}

// hold holds the request to what it asks for.
func (a *asked) hold(ctx context.Context) error {
	if a.callee.DialectName() == iat.Dialect && a.m.Meta.Dialect != iat.Dialect { // there it is an envelope like any
		if err := iat.CheckAction(a.envelope()); err != nil {
			return err
		}
	}
	switch a.action {
	case wire.ActionExecute:
		return a.give(ctx)
	case wire.ActionHandoff:
		return a.handedOff(ctx)
	}
	name, arguments, ok := wire.ToolCallOf(a.body)
	if !ok || name == "" {
		return agora.Errorf(agora.InvalidRequest, "call_tool names no tool: tool_name must be a string")
	}
	return a.called(ctx, Tool{Name: name, Arguments: present(arguments)})
}

// envelope is the request as an agent of IAT gets it.
func (a *asked) envelope() *iat.Envelope {
	return &iat.Envelope{
		ID: cmp.Or(a.m.Meta.Request, wire.RequestIDOf(a.body)), Parent: a.m.Meta.Parent, Type: iat.Request, From: string(a.m.From), To: string(a.m.To.Agent),
		Stream: a.m.Part == agora.Start, Action: a.action, Payload: a.body,
	}
}

// called holds a call of a tool to the checks of one.
func (a *asked) called(ctx context.Context, t Tool) error {
	if a.m.Part != agora.Whole {
		return agora.Errorf(agora.InvalidRequest, "a call of a tool is one whole request, and no stream")
	}
	t.Parent = a.m.Meta.Parent
	return a.screen.CheckTool(ctx, Call{Actor: a.by, As: a.m.From, To: a.callee, gone: a.gone}, t)
}

// handedOff holds a request for the path of a tool to the checks of a call. Of what is no request that can be handed on
// nobody calls a tool.
func (a *asked) handedOff(ctx context.Context) error {
	q, err := p2p.FromPayload(a.body)
	if err != nil {
		return nil
	}
	h := Handoff(q)
	t, is, err := h.tool()
	if err != nil || !is {
		return err
	}
	return a.called(ctx, t)
}

// give notes a task: from then on it limits what its callee may call. One that limits nothing, and is not said as one,
// passes.
func (a *asked) give(ctx context.Context) error {
	e := a.envelope()
	x, err := e.Execute()
	if err != nil {
		if !limits(a.body) { // an action of that name is common, and this may be another one
			return nil
		}
		return err
	}
	if a.m.Part != agora.Whole {
		return agora.Errorf(agora.InvalidRequest, "a task is one whole request, and no stream")
	}
	if a.m.Meta.Dialect == iat.Dialect {
		e.ID = cmp.Or(e.ID, a.m.ClientID())
	}
	if e.ID == "" { // its answer names it, and so does who calls a tool in its name
		e.ID = nameOf(a.m)
		a.m.Meta.Request = e.ID
	}
	defer a.screen.lately.forget(agora.ToAgent(a.by.Principal().Tenant, a.m.To.Agent))
	return a.screen.tools.Give(ctx, presence.Execute{
		Tenant: a.by.Principal().Tenant, Callee: a.m.To.Agent, Caller: a.m.From, By: a.by.Principal().Name, Request: e.ID, Tools: x.Allowed, Limited: x.Limited, Until: a.m.Meta.Deadline,
	})
}

// limits reports whether the payload of a task says which tools may be called for it.
func limits(payload []byte) bool {
	var all map[string]json.RawMessage
	return json.Unmarshal(payload, &all) != nil || len(all["allowed_tools"]) > 0
}

// nameOf returns a name for a request that has none: the same when it is said again, where it can be told that it is.
func nameOf(m *agora.Message) string {
	if m.ID == "" {
		return "agora-" + rand.Text()[:16]
	}
	h := sha256.Sum256([]byte(m.ID))
	return "agora-" + hex.EncodeToString(h[:8])
}
