package iat

import (
	"context"
	"encoding/json"

	"github.com/agora-relay/agora"
)

// Agent is a sub-agent: it does the tasks that hosts give it, and offers tools. Its methods may be called at the same
// time, but for those whose names begin with On, which are called before Serve.
type Agent struct {
	*peer
	onExecute func(context.Context, *Task) (any, error)
}

// NewAgent returns an agent, which connects to nothing yet. Its errors are those of the configuration. The caller owes
// it a call of Close.
func NewAgent(cfg Config) (*Agent, error) {
	p, err := newPeer(cfg)
	if err != nil {
		return nil, err
	}
	return &Agent{peer: p}, nil
}

// OnExecute has f called for each task, up to Config.Handlers at the same time. What f returns becomes the response: a
// [Done] or a string, which is the summary of one, as the action done; anything else as its JSON. An error becomes
// payload.error, with its code where it is an [*Error] or an [agora.Error], else [Failed].
//
// The context ends at the task's deadline, with [ErrCancelled] as its cause when the host has given the task up, and
// with Serve: then the task is not answered, and is given to the program that comes next under the agent's id.
func (a *Agent) OnExecute(f func(context.Context, *Task) (any, error)) { a.onExecute = f }

// Done is a result as the action done says it.
type Done struct {
	Summary string // result_summary
	Usage   any    // usage_stats, an object; nil for none
}

// MarshalJSON returns the payload of the action done.
func (d Done) MarshalJSON() ([]byte, error) {
	return object(member{"action", "done"}, member{"result_summary", d.Summary}, member{"usage_stats", d.Usage})
}

// Serve registers the agent and its tools, does so again in time, and takes what it is asked, until ctx ends: then it
// returns nil, once every function has returned. It outlasts edges, and comes back to another one. An [*Error] is why
// an edge refuses permanently, such as AGENT_EXISTS where the id is held elsewhere; [ErrClosed] that Close was called.
func (a *Agent) Serve(ctx context.Context) error {
	return a.serve(ctx, service{declares: true, take: a.take, made: func() {}})
}

func (a *Agent) take(ctx context.Context, e *delivery) (string, job) {
	switch action := e.action(); {
	case e.Header.Type != Request:
		return "", nil
	case action == "call_tool":
		return a.calledTool(ctx, e)
	case action == "execute" && a.onExecute != nil:
		return e.Header.MsgID, a.request(ctx, e, func(ctx context.Context) (any, error) { return a.execute(ctx, e) })
	}
	return a.unknown(ctx, e)
}

// execute does a task.
func (a *Agent) execute(ctx context.Context, e *delivery) (any, error) {
	var p struct {
		Query   string
		Context []json.RawMessage
		Allowed []string
	}
	if err := readMembers(e.Payload, map[string]any{"query": &p.Query, "context_fragments": &p.Context, "allowed_tools": &p.Allowed}); err != nil {
		return nil, agora.Errorf(agora.InvalidRequest, "the task can't be read")
	}
	t := &Task{
		Execute: Execute{ID: e.Header.MsgID, Query: p.Query, Context: p.Context, AllowedTools: p.Allowed, Deadline: e.deadline(), TraceID: e.Metadata.TraceID},
		From:    e.Header.From, Redelivered: e.Metadata.Redelivered, root: e.Metadata.WorkspaceRoot, agent: a, ctx: ctx,
	}
	t.out = newPieces(t.sendChunk)
	result, err := a.onExecute(ctx, t)
	if broken := t.end(); err == nil {
		err = broken
	}
	if summary, ok := result.(string); ok {
		result = Done{Summary: summary}
	}
	return result, err
}
