package agenttools

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// maxMessage bounds the bytes of a notification of progress.
const maxMessage = 1024

// handle returns the handler of a tool of an agent. Whatever goes wrong is a result with isError: it never returns an
// error, and blocks for [Config.CallTimeout] at most.
func (t *Catalog) handle(x tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		w, err := t.call(ctx, req, x, req.Params.Arguments)
		return w.result(t.sentence(x, err)), nil
	}
}

// sentence is [Catalog.problem] of an error that may be nil.
func (t *Catalog) sentence(x tool, err error) string {
	if err == nil {
		return ""
	}
	return t.problem(x, err)
}

// call calls a tool with the arguments that fit its offered schema and collects the answer; with an error, what came
// before it. The tool's agent is told when ctx ends before the answer is whole.
func (t *Catalog) call(ctx context.Context, req *mcp.CallToolRequest, x tool, raw json.RawMessage) (*answer, error) {
	w := new(answer)
	select {
	case t.calls <- struct{}{}:
		defer func() { <-t.calls }()
	default:
		return w, agora.Errorf(agora.RateLimited, "%d are under way", maxCalls)
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.CallTimeout)
	defer cancel()
	arguments, err := x.arguments(raw)
	if err != nil {
		return w, err
	}
	call, err := t.agents.CallTool(ctx, x.agent, x.name, arguments)
	if err != nil {
		return w, err
	}
	defer call.Close()
	return w, t.collectAnswer(ctx, call, w, reporter{req: req, every: t.progress})
}

// collectAnswer reads a call to its end and reports its progress.
func (t *Catalog) collectAnswer(ctx context.Context, call *client.Call, w *answer, r reporter) error {
	for a, err := range call.Chunks() {
		if err != nil {
			return err
		}
		w.add(a)
		r.report(ctx, w.last)
	}
	last, err := call.Result(ctx)
	if err != nil {
		return err
	}
	w.end(last)
	return nil
}

// arguments returns what the tool is called with: nil for nothing.
func (x *tool) arguments(raw json.RawMessage) (any, error) {
	switch raw = bytes.TrimSpace(raw); {
	case x.wrapped:
		return unwrap(raw)
	case len(raw) == 0, string(raw) == "null":
		return nil, nil
	}
	return raw, nil
}

// reporter tells a host of the progress of a call, where the host has asked for it.
type reporter struct {
	req    *mcp.CallToolRequest
	every  time.Duration // at least between two notifications
	last   time.Time     // of the last one
	pieces int
	unsaid string // what came since, its end
}

// report takes in what a piece says, and sends what was not sent yet, unless the last notification was a moment ago.
// What is never sent stands in the result. It blocks while the host reads nothing.
func (r *reporter) report(ctx context.Context, said string) {
	token := r.req.Params.GetProgressToken()
	if token == nil {
		return
	}
	r.pieces++
	r.unsaid += said
	if over := len(r.unsaid) - maxMessage; over > 0 {
		r.unsaid = strings.ToValidUTF8(r.unsaid[over:], "")
	}
	if now := time.Now(); now.Sub(r.last) >= r.every {
		r.last = now
		p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(r.pieces), Message: r.unsaid}
		_ = r.req.Session.NotifyProgress(ctx, p) // a host that has gone waits for no result either
		r.unsaid = ""
	}
}
