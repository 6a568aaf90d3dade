package rest

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/web"
)

// request is the body of a POST to /agents/{id}/handoff.
type request struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Params json.RawMessage `json:"params"`
	Input  json.RawMessage `json:"input_data"`
}

// handoff hands a request to an agent, in the way of its dialect. The answer is as that of ask.
func (d *door) handoff(x *web.Exchange) error {
	var r request
	if err := x.Decode(&r); err != nil {
		return err
	}
	t, err := termsOf(x)
	if err != nil {
		return err
	}
	h := carrier.Handoff{Method: strings.ToUpper(r.Method), Path: r.Path, Params: r.Params, Input: r.Input}
	return t.respond(x, func(ctx context.Context) (carrier.Answer, error) {
		return d.carriers.Handoff(ctx, t.call(x), h)
	})
}

// callTool calls a tool of an agent: the body is its arguments. The answer is as that of ask.
func (d *door) callTool(x *web.Exchange) error {
	arguments, err := x.JSON()
	if err != nil {
		return err
	}
	t, err := termsOf(x)
	if err != nil {
		return err
	}
	tool := carrier.Tool{Name: x.Request.PathValue("tool"), Arguments: arguments}
	return t.respond(x, func(ctx context.Context) (carrier.Answer, error) {
		return d.carriers.CallTool(ctx, t.call(x), tool)
	})
}
