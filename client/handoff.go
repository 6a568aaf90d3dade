package client

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// Card returns what an agent of any dialect says of itself, in its own words: the JSON that it has registered with, or
// that it answers now; else what the directory knows of it, as [Client.AgentCard] does. AGENT_NOT_FOUND where it is not
// in the directory, FORBIDDEN, UNAVAILABLE, and what has come of asking it.
func (c *Client) Card(ctx context.Context, id string) (json.RawMessage, error) {
	f, err := c.sender.call(ctx, &wire.Frame{Type: "card.get", To: id})
	if err != nil {
		return nil, err
	}
	return f.Card, nil
}

// Handoff is a request as an agent with methods and paths takes it.
type Handoff struct {
	Method string // POST if empty
	Path   string // begins with a slash; {name} in it stands for one of Params
	Params any    // an object, or nil for none
	Input  any    // any JSON value, or nil for none
}

// frame returns what is to be sent to an agent, and what of that is large.
func (h *Handoff) frame(to string) (q *wire.Frame, size json.RawMessage, err error) {
	q = &wire.Frame{Type: "handoff", To: to, Method: h.Method, Path: h.Path}
	if q.Method == "" {
		q.Method = "POST"
	}
	if q.Params, err = encode(h.Params); err != nil {
		return nil, nil, err
	}
	if q.Input, err = encode(h.Input); err != nil {
		return nil, nil, err
	}
	if !strings.HasPrefix(q.Path, "/") {
		return nil, nil, agora.Errorf(agora.InvalidRequest, "the path of a handoff must begin with a slash")
	}
	return q, append(q.Params[:len(q.Params):len(q.Params)], q.Input...), nil
}

// Handoff hands a request to an agent of any dialect: a server gets it as it is, an agent like this one as a message
// whose payload has the action "handoff", and its reply is the answer. It returns once the request is on its way, and
// blocks only while too much is. The context governs it: its deadline travels with it, and when it ends the agent is
// told that nobody waits.
//
// A reconnect in between changes nothing: the request is made once, where the agent's dialect can. What goes wrong is
// told by the Call, as by [Client.CallTool]; the Status of an [AnswerError] is the code that the agent has answered
// with.
func (c *Client) Handoff(ctx context.Context, to string, h Handoff) (*Call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, size, err := h.frame(to)
	if err != nil {
		return nil, err
	}
	return c.sender.begin(ctx, q, size)
}
