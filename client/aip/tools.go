package aip

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"

	"google.golang.org/grpc"

	"github.com/agora-relay/agora"
	wire "github.com/agora-relay/agora/wire/aip"
)

// ToolClient calls the tools of one toolbox. Its methods may be called at the same time.
type ToolClient struct {
	agent   *Agent
	toolbox string
	address string // where it is called without a gateway

	mu      sync.Mutex // guards the fields below
	channel *channel   // to that address; nil until it is called
	shut    bool
}

// Tools returns what calls the tools of a toolbox, through the gateway. The caller owes it a call of Close.
func (a *Agent) Tools(toolbox string) *ToolClient { return &ToolClient{agent: a, toolbox: toolbox} }

// ToolsAt is [Agent.Tools] without a gateway: the toolbox itself is called, at the address that it is listed with.
func (a *Agent) ToolsAt(address, toolbox string) *ToolClient {
	return &ToolClient{agent: a, toolbox: toolbox, address: address}
}

// CallTool calls a tool of a toolbox through the gateway, as [ToolClient.Call] does.
func (a *Agent) CallTool(ctx context.Context, toolbox, tool string, arguments any) (*ToolResponse, error) {
	c := a.Tools(toolbox)
	defer c.Close()
	return c.Call(ctx, tool, arguments)
}

// Call calls a tool. Arguments are any value that is JSON, nil for an empty object. A tool that has failed is a
// response with IsError and its ErrorMessage. The error is the status of a call that has not come to an end: it is not
// made again, and nobody knows whether the tool was called.
func (t *ToolClient) Call(ctx context.Context, tool string, arguments any) (*ToolResponse, error) {
	text, err := argumentsText(arguments)
	if err != nil {
		return nil, err
	}
	a := t.agent
	req := &ToolRequest{SenderId: a.cfg.ID, ReceiverId: t.toolbox, SessionId: rand.Text(), ToolName: tool, Arguments: text}
	ctx, cancel := a.within(ctx)
	defer cancel()
	if t.address != "" {
		resp, err := t.direct(ctx, req)
		return resp, a.why(err)
	}
	c, _, err := a.gateways.pick(ctx)
	if err != nil {
		return nil, a.why(err)
	}
	defer a.pool.release(c)
	resp, err := a.gateways.client(c).RouteToolCalling(ctx, req)
	return resp, a.why(err)
}

// direct calls the toolbox itself.
func (t *ToolClient) direct(ctx context.Context, req *ToolRequest) (*ToolResponse, error) {
	c, err := t.connection()
	if err != nil {
		return nil, err
	}
	return wire.NewToolServiceClient(c).CallTool(ctx, req)
}

// connection returns the channel to the toolbox, which is kept until Close.
func (t *ToolClient) connection() (grpc.ClientConnInterface, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut {
		return nil, ErrClosed
	}
	c, err := t.agent.pool.fresh(t.address)
	if err != nil {
		return nil, err
	}
	if t.channel != nil {
		t.agent.pool.release(t.channel)
	}
	t.channel = c
	return c, nil
}

// Close gives back what the client has. It may be called more than once.
func (t *ToolClient) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut = true
	if t.channel != nil {
		t.agent.pool.release(t.channel)
		t.channel = nil
	}
	return nil
}

// argumentsText returns the arguments of a tool as JSON.
func argumentsText(arguments any) (string, error) {
	switch v := arguments.(type) {
	case nil:
		return "{}", nil
	case json.RawMessage:
		if !json.Valid(v) {
			return "", agora.Errorf(agora.InvalidRequest, "the arguments are no JSON")
		}
		return string(v), nil
	}
	text, err := marshal(arguments)
	if err != nil {
		return "", agora.Errorf(agora.InvalidRequest, "the arguments can't be written as JSON: %v", err)
	}
	return text, nil
}

// marshal returns a value as JSON, as people would write it.
func marshal(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte{'\n'})), nil
}
