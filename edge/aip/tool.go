package aip

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/wire/aip"
)

// toolCall is a call of a tool.
type toolCall struct {
	*caller
	aip.ToolEnvelope               // its texts are slices of in
	as               agora.AgentID // who calls
	to               agora.AgentID // whose tool
	in               *aip.Frame
	trace            string // W3C traceparent; empty for none
}

// routeTool answers RouteToolCalling: by the toolbox itself, or by the agent of another dialect whose tool is called.
func (r *router) routeTool(ctx context.Context, in *aip.Frame) (out any, err error) {
	begun := time.Now()
	r.stats.Calls.Add(1)
	r.stats.In.Add(int64(in.Len()))
	defer func() {
		r.stats.Calls.Add(-1)
		r.stats.Tools.Took.Observe(time.Since(begun))
		r.stats.Tools.ended(statusCode(ctx, err))
	}()
	c := &toolCall{caller: callerOf(ctx), in: in, trace: traceOf(ctx)}
	if err := c.read(); err != nil {
		return nil, err
	}
	r.registry.reportAlive(agora.ToAgent(c.actor.Principal().Tenant, c.as))
	t, err := r.registry.recent.find(ctx, c.caller, c.to)
	if err != nil {
		return nil, c.unreached(c.as, err)
	}
	switch {
	case !t.node:
		return r.carry(ctx, c, t)
	case !t.toolbox:
		return nil, agora.Errorf(agora.NotFound, "'%s' is an agent, and has no tool of that name", c.to)
	}
	return r.invoke(ctx, c, t)
}

// read reads what routes the request.
func (c *toolCall) read() (err error) {
	if c.ToolEnvelope, err = aip.ReadToolEnvelope(c.in.Bytes()); err != nil {
		return err
	}
	if c.as, err = c.speaks(string(c.Sender)); err != nil {
		return err
	}
	if c.to, err = agora.ParseAgentID(string(c.Receiver)); err != nil {
		return aip.NoReceiver()
	}
	return nil
}

// sign has the request name its sender by the id that its caller's credentials give it.
func (c *toolCall) sign() {
	if string(c.Sender) != string(c.as) {
		c.in.Append(aip.AppendSender(nil, string(c.as)))
	}
}

// checks holds a call to what the toolbox has declared, to the tasks of its caller, and to the workspaces of both, as a
// call by any other door. Arguments that are no JSON are the toolbox's affair, where it has declared none that they
// would have to fit, and nobody a workspace.
func (r *router) checks(ctx context.Context, c *toolCall, t *target) error {
	tool := carrier.Tool{Name: string(c.Tool)}
	if arguments := bytes.Trim(c.Arguments, " \t\r\n"); len(arguments) > 0 {
		tool.Arguments = arguments
	}
	return r.cfg.Carriers.CheckToolLately(ctx, carrier.Call{Actor: c.actor, As: c.as, To: t.card}, tool)
}

// invoke calls the toolbox itself, once: request and response pass as the bytes that they are.
func (r *router) invoke(ctx context.Context, c *toolCall, t *target) (any, error) {
	if err := c.actor.Spend(ctx, c.as, c.in.Len()); err != nil {
		return nil, err
	}
	if err := r.checks(ctx, c, t); err != nil {
		return nil, err
	}
	by, to := c.actor.Owner(c.as), agora.ToAgent(t.tenant, c.to)
	if err := r.node.Usage().OpenCall(by, to); err != nil {
		return nil, err
	}
	defer r.node.Usage().CloseCall(by, to)
	ch, err := r.channels.get(t.place())
	if err != nil {
		return nil, err
	}
	defer ch.release()
	c.sign()
	span, trace := r.span(c.as, t, c.trace)
	out := new(aip.Frame)
	calling, sent := observed(outgoing(ctx, trace))
	if calling, err = r.toward(calling, t); err == nil {
		err = ch.Invoke(calling, toolMethod(t.link != nil), c.in, out)
	}
	span.End(spanError(err))
	r.registry.judged(ctx, t, err, sent)
	if err != nil {
		return nil, err
	}
	r.stats.Out.Add(int64(out.Len()))
	return out, nil
}

// carry calls the tool of an agent of another dialect, in the way of that.
func (r *router) carry(ctx context.Context, c *toolCall, t *target) (any, error) {
	tool, err := c.Call()
	if err != nil {
		return nil, err
	}
	call := carrier.Call{Actor: c.actor, As: c.as, To: agora.Agent{ID: c.to}, Trace: c.trace}
	if deadline, has := ctx.Deadline(); has {
		call.Within = max(time.Until(deadline), time.Millisecond)
	}
	answer, err := r.cfg.Carriers.CallTool(ctx, call, carrier.Tool{Name: tool.Name, Arguments: tool.Arguments})
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	back, session := aip.Route{Sender: string(c.Receiver), Receiver: string(c.Sender)}, string(c.Session)
	for result := (aip.ToolAnswer{Most: r.cfg.MaxMessage}); ; {
		m, err := answer.Next(ctx)
		if errors.Is(err, io.EOF) {
			return aip.NewFrame(result.Append(nil, back, session)), nil
		}
		if _, failed := errors.AsType[*carrier.Failure](err); failed {
			return aip.NewFrame(aip.AppendToolError(nil, back, session, err)), nil
		}
		if err == nil {
			err = result.Add(&m)
		}
		if err != nil {
			return nil, err
		}
	}
}
