package ws

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/wire"
)

// toolCalls are the calls of tools whose answers a connection waits for, each on a goroutine of its own.
type toolCalls struct {
	ctx  context.Context // ends with the connection
	stop context.CancelFunc
	work sync.WaitGroup
	open map[string]struct{} // by the ids of their frames; the connection's mu guards it
}

// toolCall is one of them.
type toolCall struct {
	id   string // of its frame
	call carrier.Call
	tool carrier.Tool
}

// maxWithin is the longest that a call may take: more is no deadline at all.
const maxWithin = 365 * 24 * time.Hour

// callTool calls a tool of an agent. What becomes of it is told later. Its name is the session's and the frame's: sent again on the session's next
// connection it is the same call.
func (c *conn) callTool(s *edge.Session, f *wire.Frame) error {
	q := toolCall{f.ID, carrier.Call{
		Actor: s.Actor(), As: s.Agent(), To: agora.Agent{ID: agora.AgentID(f.To)}, Name: "ws/" + s.ID() + "/" + f.ID, Trace: f.Traceparent,
		Within: time.Duration(min(f.DeadlineMS, maxWithin.Milliseconds())) * time.Millisecond,
	}, carrier.Tool{Name: f.ToolName, Arguments: bytes.Clone(f.Arguments), Parent: f.ParentID}}
	t, err := c.openTool(q.id)
	if err != nil {
		return err
	}
	t.work.Go(func() { c.runTool(t.ctx, &q) })
	return nil
}

// openTool counts a call in, if the limits allow.
func (c *conn) openTool(id string) (*toolCalls, error) {
	limit := c.door.node.calls()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tools == nil {
		t := &toolCalls{open: map[string]struct{}{}}
		t.ctx, t.stop = context.WithCancel(context.Background())
		c.tools = t
	}
	t := c.tools
	if c.closing {
		t.stop()
	}
	if _, twice := t.open[id]; twice {
		return nil, agora.Errorf(agora.InvalidRequest, "a call_tool with this id is open")
	}
	if len(t.open) >= limit {
		return nil, &agora.Error{Code: agora.RateLimited, Message: "too many tools are being called", RetryAfter: time.Second}
	}
	t.open[id] = struct{}{}
	return t, nil
}

// closeTool counts a call out.
func (c *conn) closeTool(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tools.open, id)
}

// endTools ends all calls, and returns when none is open. No verb runs.
func (c *conn) endTools() {
	c.mu.Lock()
	t := c.tools
	c.mu.Unlock()
	if t != nil {
		t.stop()
		t.work.Wait()
	}
}

// runTool makes a call and tells what comes of it, until ctx is over: its caller may ask again on another connection.
func (c *conn) runTool(ctx context.Context, q *toolCall) {
	result, err := c.toolResult(ctx, q)
	c.closeTool(q.id) // before its caller hears the last of it
	switch {
	case err == nil:
		c.queueInTurn(result)
	case ctx.Err() == nil:
		c.refuse(&wire.Frame{ID: q.id, To: string(q.call.To.ID)}, err)
	}
}

// toolResult tells the pieces of a tool's answer, and returns what is to be told behind them. The error is one of which it is not known that
// it is the answer.
func (c *conn) toolResult(ctx context.Context, q *toolCall) (*wire.Frame, error) {
	a, err := c.door.cfg.Carriers.CallTool(ctx, q.call, q.tool)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	result := &wire.Frame{Type: "tool.result", ID: q.id, From: string(q.call.To.ID)}
	for index := uint32(0); ; {
		m, err := a.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return result, nil
		case err != nil:
			result.Error = failure(err)
			if result.Error != nil && ctx.Err() == nil {
				return result, nil
			}
			return nil, err
		case m.Part == agora.Whole || m.Part == agora.End:
			result.Body, result.Media = toolBody(&m), wire.Media(&m)
		case m.Part == agora.Chunk: // what a streamed answer begins with is for its correlation
			c.queueInTurn(&wire.Frame{
				Type: "tool.chunk", ID: q.id, From: result.From, Index: index, HasIndex: true, Body: toolBody(&m), Media: wire.Media(&m), Item: wire.Item(&m),
			})
			index++
		}
	}
}

// toolBody is a part of an answer as JSON; nil where there is none, but for a piece of text.
func toolBody(m *agora.Message) []byte {
	switch {
	case m.Body != nil:
		return wire.AppendBody(nil, m)
	case m.Part == agora.Chunk:
		return []byte(`""`)
	}
	return nil
}

// failure is how a call failed whose agent was reached; nil where the cluster can't tell how it went.
func failure(err error) *wire.Failure {
	e := agora.AsError(err)
	if f, ok := errors.AsType[*carrier.Failure](err); ok {
		return &wire.Failure{Code: string(e.Code), Message: e.Message, Path: f.Path}
	}
	if e.Code == agora.Unavailable {
		return nil
	}
	return &wire.Failure{Code: string(e.Code), Message: e.Message}
}
