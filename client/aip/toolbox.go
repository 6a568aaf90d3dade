package aip

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	wire "github.com/agora-relay/agora/wire/aip"
)

// Toolbox is a set of tools that others call. Its methods may be called at the same time.
type Toolbox struct {
	*node

	tools sync.Mutex // guards the field below
	have  []declared
}

// declared is a tool and what is called for it.
type declared struct {
	Tool
	call func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// Tool is what others read of a tool.
type Tool struct {
	Name        string
	Description string
	Version     string
	Arguments   string // what it takes: a JSON Schema, or words for those who read it
}

// NewToolbox returns a toolbox without tools, which connects to nothing yet. Its errors are those of the configuration.
// The caller owes it a call of Close, or of Serve.
func NewToolbox(cfg Config) (*Toolbox, error) {
	n, err := newNode(cfg)
	if err != nil {
		return nil, err
	}
	t := &Toolbox{node: n}
	n.attach = func(s *grpc.Server) { wire.RegisterToolServiceServer(s, toolService{toolbox: t}) }
	n.info = func(address string) *Peer { return toolboxPeer(t.infoAt(address)) }
	return t, nil
}

// AddTool adds a tool, or replaces the one of that name. f is called for each call of it, at the same time, with
// arguments that are JSON. What it returns becomes the content of the response: a string is text, bytes are embedded, a
// [ContentItem] or a slice of them is what it is, and anything else is text that is its JSON; nil is none. An error
// becomes a response with IsError and the error's text, or the status of the call where it has one of gRPC. The context
// ends when the caller gives up, and with the toolbox. What is added to a toolbox that is registered, others read after
// UpdateInfo.
func (t *Toolbox) AddTool(tool Tool, f func(ctx context.Context, arguments json.RawMessage) (any, error)) error {
	if tool.Name == "" {
		return agora.Errorf(agora.InvalidRequest, "a tool needs a name")
	}
	t.tools.Lock()
	defer t.tools.Unlock()
	d := declared{tool, f}
	if i := t.index(tool.Name); i >= 0 {
		t.have[i] = d
		return nil
	}
	t.have = append(t.have, d)
	return nil
}

// index returns where a tool stands; -1 for nowhere. The lock is held.
func (t *Toolbox) index(name string) int {
	return slices.IndexFunc(t.have, func(d declared) bool { return d.Name == name })
}

// Info returns what the toolbox registers with.
func (t *Toolbox) Info() *ToolBoxInfo { return t.infoAt(t.Address()) }

func (t *Toolbox) infoAt(address string) *ToolBoxInfo {
	t.tools.Lock()
	defer t.tools.Unlock()
	info := &ToolBoxInfo{ToolboxId: t.cfg.ID, Address: address, Name: t.cfg.Name, Domain: t.cfg.Domain, Description: t.cfg.Description}
	for _, d := range t.have {
		info.Tools = append(info.Tools, &ToolInfo{Name: d.Name, Description: d.Description, Arguments: d.Arguments, Version: d.Version})
	}
	return info
}

// toolService serves the tools of a toolbox.
type toolService struct {
	wire.UnimplementedToolServiceServer
	toolbox *Toolbox
}

// CallTool implements the protocol's method.
func (s toolService) CallTool(ctx context.Context, req *ToolRequest) (*ToolResponse, error) {
	t := s.toolbox
	if !t.is(req.GetReceiverId()) {
		return nil, errNoReceiver
	}
	resp := &ToolResponse{SenderId: t.cfg.ID, ReceiverId: req.GetSenderId(), SessionId: req.GetSessionId()}
	f, err := t.callOf(req.GetToolName())
	if err != nil {
		return nil, err
	}
	arguments := json.RawMessage(req.GetArguments())
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if !json.Valid(arguments) {
		return nil, status.Error(codes.InvalidArgument, "the arguments are no JSON")
	}
	result, err := f(ctx, arguments)
	if err == nil {
		resp.Content, err = resultContent(result)
	}
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if s, ok := status.FromError(err); err != nil && ok {
		return nil, s.Err()
	}
	if err != nil {
		resp.IsError, resp.ErrorMessage, resp.Content = true, err.Error(), nil
	}
	return resp, nil
}

func (t *Toolbox) callOf(name string) (func(context.Context, json.RawMessage) (any, error), error) {
	t.tools.Lock()
	defer t.tools.Unlock()
	i := t.index(name)
	if i < 0 {
		return nil, status.Errorf(codes.NotFound, "Tool [%s] not found", name)
	}
	return t.have[i].call, nil
}

// resultContent returns what a tool has returned as content.
func resultContent(result any) ([]*ContentItem, error) {
	switch v := result.(type) {
	case nil:
		return nil, nil
	case string, *ContentItem, []*ContentItem:
		return NewContent(v)
	case json.RawMessage:
		return []*ContentItem{Text(string(v))}, nil
	case []byte:
		return []*ContentItem{Embedded(v)}, nil
	}
	text, err := marshal(result)
	if err != nil {
		return nil, err
	}
	return []*ContentItem{Text(text)}, nil
}
