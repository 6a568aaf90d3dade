package carrier

import (
	"context"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/aip"
)

// mail reaches an agent by its mailbox: what it is asked for is a request whose payload names an action, and its reply
// is the answer.
type mail struct{}

// Card is what the agent registered with.
func (mail) Card(_ context.Context, c Call) (agora.Registration, error) {
	return c.To.Registration, nil
}

func (mail) Handoff(ctx context.Context, c Call, h Handoff) (Answer, error) {
	box := c.box()
	return c.ask(ctx, call.Request{Box: box, Message: agora.Message{Body: wire.AppendHandoff(nil, box, h.Method, h.Path, h.Params, h.Input)}, Checked: true})
}

func (mail) CallTool(ctx context.Context, c Call, t Tool) (Answer, error) {
	box := c.box()
	return c.ask(ctx, call.Request{Box: box, Message: agora.Message{Body: wire.AppendToolCall(nil, box, t.Name, t.Arguments)}, Checked: true})
}

// box returns the id of the call, by which the agent answers it.
func (c *Call) box() string { return call.NewBox(c.Actor.Principal().Tenant, c.As, c.Name) }

// ask asks the agent for an action, which stands in the request's body.
func (c *Call) ask(ctx context.Context, q call.Request) (Answer, error) {
	q.Name, q.Within = c.Name, c.Within
	q.Message.ID, q.Message.To, q.Message.Meta.Trace = q.Box, agora.Address{Agent: c.To.ID}, c.Trace
	a, err := c.Actor.Call(ctx, c.As, q)
	if err != nil {
		return nil, err // and no Answer that holds a nil
	}
	if c.To.Dialect == aip.Dialect { // whose answers say by themselves whether they are errors
		return a, nil
	}
	return Replies(a), nil
}
