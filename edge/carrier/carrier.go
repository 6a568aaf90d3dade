// Package carrier is how an agent is reached for more than a message: asked for its card, handed a request, or have a
// tool called. Each dialect has a Carrier that does it in the dialect's own way; agents of the others get it as mail,
// and their reply is the answer.
package carrier

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/wire/p2p"
)

// Carrier reaches the agents of one dialect. Its methods may be called at the same time. What they return as an error
// is an [agora.Error], or hidden from agents.
type Carrier interface {
	// Card returns the card of an agent as its dialect has it; the zero Registration where that is no more than the
	// directory says.
	Card(ctx context.Context, c Call) (agora.Registration, error)
	// Handoff hands a request to an agent. The caller owes the answer a call of Close.
	Handoff(ctx context.Context, c Call, h Handoff) (Answer, error)
	// CallTool calls a tool of an agent. The caller owes the answer a call of Close.
	CallTool(ctx context.Context, c Call, t Tool) (Answer, error)
}

// Call says who asks whom.
type Call struct {
	Actor  *edge.Actor
	As     agora.AgentID // in whose name the actor asks
	To     agora.Agent   // its card; its id alone where it is away
	Name   string        // makes it one that is done once, where the dialect can: see call.Request
	Within time.Duration // how long the answer may take until it is whole; 0 for as long as it likes
	Trace  string        // W3C traceparent of the call; empty for none

	gone bool // it is not in the directory
}

// Handoff is a request as an agent with paths takes it.
type Handoff struct {
	Method string          // upper case
	Path   string          // begins with a slash; {name} stands for a parameter
	Params json.RawMessage // an object; nil for none
	Input  json.RawMessage // any JSON; nil for none
}

// Check returns INVALID_REQUEST where a request is none.
func (h *Handoff) Check() error {
	switch {
	case h.Method == "" || strings.ContainsFunc(h.Method, func(r rune) bool { return r < 'A' || r > 'Z' }):
		return agora.Errorf(agora.InvalidRequest, "method must be a word such as GET")
	case !strings.HasPrefix(h.Path, "/"):
		return agora.Errorf(agora.InvalidRequest, "path must begin with a slash")
	case h.Params != nil && h.Params[0] != '{':
		return agora.Errorf(agora.InvalidRequest, "params must be an object")
	}
	return nil
}

// Tool is a call of a tool.
type Tool struct {
	Name      string
	Parent    string          // the task in whose name it is called; empty for none
	Arguments json.RawMessage // any JSON; nil for none

	beside json.RawMessage // what goes with the call where it is a request for a path; nil for nothing
}

// Answer is what comes back: a whole message, or the parts of a stream; io.EOF behind its end. One goroutine at a time
// calls Next; Close may be called from any, ends the call where it continues, and is idempotent. A context that ends by
// [ErrGivenUp] says that the caller does not ask again.
//
// An error of Next is a [Failure] where the agent itself has answered that it can't.
type Answer interface {
	Next(ctx context.Context) (agora.Message, error)
	Close()
}

// ErrGivenUp is [call.ErrGivenUp], for doors.
var ErrGivenUp = call.ErrGivenUp

// Failure is the error that an agent has answered with, in the way of its dialect.
type Failure struct {
	Err  *agora.Error
	Path string // where in what was asked; may be empty
}

// Error returns what the agent said.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error as agents see it.
func (f *Failure) Unwrap() error { return f.Err }

// Carriers are those of an edge. Doors register theirs before the edge serves anybody.
type Carriers struct {
	mail      Carrier
	byDialect map[string]Carrier
	tools     *tools.Guard
	lately    lately
}

// New returns carriers that reach every agent by mail, and have calls of tools checked by a guard, which other parts of
// the edge use as well; by what their callees have declared alone if it is nil.
func New(g *tools.Guard) *Carriers {
	if g == nil {
		g = tools.NewGuard(tools.GuardConfig{})
	}
	return &Carriers{mail: mail{}, byDialect: map[string]Carrier{}, tools: g}
}

// Register has a carrier reach the agents of a dialect.
func (cs *Carriers) Register(dialect string, c Carrier) { cs.byDialect[dialect] = c }

// Mail returns the carrier that reaches agents by their mailboxes, whatever their dialect.
func (cs *Carriers) Mail() Carrier { return cs.mail }

// of returns the carrier that reaches an agent.
func (cs *Carriers) of(to *agora.Agent) Carrier {
	if c := cs.byDialect[to.DialectName()]; c != nil {
		return c
	}
	return cs.mail
}

// Card asks an agent for its card. c.To needs its id alone. FORBIDDEN, RATE_LIMITED, AGENT_NOT_FOUND, UNAVAILABLE, and
// what its carrier says.
func (cs *Carriers) Card(ctx context.Context, c Call) (agora.Agent, agora.Registration, error) {
	to, err := c.Actor.Directory().Card(ctx, c.To.ID)
	if err != nil {
		return to, agora.Registration{}, err
	}
	c.To = to
	card, err := cs.of(&to).Card(ctx, c)
	return to, card, err
}

// Handoff hands a request to an agent, of which c.To needs the id alone. One whose path is /tools/{name}, however that
// is spelt, is a call of that tool, and held to the checks of one: an agent that has tools gets it as such a call.
// FORBIDDEN, AGENT_NOT_FOUND, INVALID_REQUEST, UNAVAILABLE, and what its carrier says. The caller owes the answer a
// call of Close.
func (cs *Carriers) Handoff(ctx context.Context, c Call, h Handoff) (Answer, error) {
	h.Params, h.Input = present(h.Params), present(h.Input)
	if err := h.Check(); err != nil {
		return nil, err
	}
	h.Path = "/" + strings.TrimLeft(h.Path, "/")
	if err := c.find(ctx); err != nil {
		return nil, err
	}
	t, is, err := h.tool()
	switch {
	case err != nil:
		return nil, err
	case is && len(c.To.Tools) > 0 && c.To.DialectName() != p2p.Dialect: // to a peer a tool is a path
		return cs.CallTool(ctx, c, t)
	case is:
		if err := cs.CheckTool(ctx, c, t); err != nil {
			return nil, err
		}
	}
	return cs.of(&c.To).Handoff(ctx, c, h)
}

// tool returns the call of a tool that a request is, as its path says.
func (h *Handoff) tool() (t Tool, is bool, err error) {
	r := p2p.Request(*h)
	t.Name, t.Arguments, is, err = r.Tool()
	if err != nil {
		return t, false, agora.AsError(err)
	}
	if h.Input != nil {
		t.beside = h.Params
	}
	return t, is, nil
}

// present returns a value, nil for null: both say that there is none.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// CallTool calls a tool of an agent, of which c.To needs the id alone. Errors are those of [tools.Guard.CheckTool], and
// else as of Handoff.
func (cs *Carriers) CallTool(ctx context.Context, c Call, t Tool) (Answer, error) {
	if err := c.find(ctx); err != nil {
		return nil, err
	}
	if err := cs.CheckTool(ctx, c, t); err != nil {
		return nil, err
	}
	return cs.of(&c.To).CallTool(ctx, c, t)
}

// CheckTool holds a call of a tool to what its callee has declared, to the tasks of its caller, and to the workspaces
// of both. Of c it takes Actor, As and To, the callee's card. Doors that make a call themselves ask it before; errors
// are those of [tools.Guard.CheckTool], and AGENT_OFFLINE where it is away, as nobody knows then what it has declared.
func (cs *Carriers) CheckTool(ctx context.Context, c Call, t Tool) error {
	if c.gone {
		away, err := c.Actor.Directory().IsAway(ctx, c.To.ID)
		if err != nil {
			return err
		}
		if away { // what is stored for it now it would take unchecked when it is back
			return agora.Errorf(agora.AgentOffline, "agent %q is away, and what tools it has is not known", c.To.ID)
		}
	}
	caller, err := known(c.Actor.Directory().Own(ctx, c.As))
	if err != nil {
		return err
	}
	caller.ID = c.As
	return cs.tools.CheckTool(ctx, cs.toolCall(c, t, caller))
}

// toolCall is a call as it is checked.
func (cs *Carriers) toolCall(c Call, t Tool, caller agora.Agent) tools.Call {
	who := c.Actor.Principal()
	return tools.Call{Tenant: who.Tenant, By: who.Name, Caller: caller, Callee: c.To, Parent: t.Parent, Tool: t.Name, Arguments: t.Arguments, Beside: t.beside}
}

// find looks up who is meant. One that is away is known by its id alone.
func (c *Call) find(ctx context.Context) error {
	to, err := known(c.Actor.Directory().Addressee(ctx, c.To.ID))
	if c.gone = to.ID == ""; !c.gone {
		c.To = to
	}
	return err
}

// known returns a card; an empty one of an agent that is not in the directory: its mailbox may be there, which is the
// carrier's to say.
func known(a agora.Agent, err error) (agora.Agent, error) {
	if e, ok := errors.AsType[*agora.Error](err); ok && e.Code == agora.AgentNotFound {
		return agora.Agent{}, nil
	}
	return a, err
}
