package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// ToolCall is a tool of another agent that was called: what it answers comes by Chunks or Next while it still
// works, and by Result behind that. It must be read to its end, or closed: what waits of it counts against
// Config.MaxBuffered, and after Config.Stall a call that is not read and holds up others fails with STREAM_ABORTED.
// Its methods are for one goroutine, but for Close.
type ToolCall struct {
	c    *Client
	id   string
	stop func() bool // ends the watch over the call's context; the client's lock guards it

	f     *frame
	ready chan struct{} // holds one token while there is a piece, or the end

	// The mailbox's lock guards these.
	pieces []ToolAnswer
	index  uint32 // of the piece that is to come
	bytes  int
	read   time.Time // when it was read last
	result ToolAnswer
	err    error // io.EOF or why it ended; nil while it is open
}

// ToolAnswer is an answer of a tool, or a piece of one.
type ToolAnswer struct {
	Body  json.RawMessage // as it was said, byte for byte; nil for none
	Media string          // media type of what Body is a string of base64 of; empty where it is JSON
	Item  uint64          // of a piece that is a part of larger bytes: which of them, from 1; 0 where it is whole
}

// ToolError is the error that a tool has answered with.
type ToolError struct {
	Err  *agora.Error
	Path string // where in what was asked; may be empty
}

// Error returns what the tool said.
func (e *ToolError) Error() string { return e.Err.Error() }

// Unwrap returns the error with its code.
func (e *ToolError) Unwrap() error { return e.Err }

// CallTool calls a tool of an agent of any dialect with arguments, any JSON value, or nil for none. It returns once the call is on its way, and
// blocks only while too much is. The context governs the call: its deadline travels with it, and when it ends nothing more is waited for.
//
// A reconnect in between changes nothing: the call is made once. What goes wrong is told by the ToolCall: NOT_FOUND, AGENT_NOT_FOUND, FORBIDDEN,
// INVALID_REQUEST where the call was not made, a [ToolError] where the tool has answered that it can't, TIMEOUT, STREAM_ABORTED where its agent
// has gone, UNAVAILABLE and [ErrUnknown] where nobody can know.
func (c *Client) CallTool(ctx context.Context, to, tool string, arguments any) (*ToolCall, error) {
	return c.callTool(ctx, &wire.Frame{Type: "call_tool", To: to, ToolName: tool}, arguments)
}

// CallTool calls a tool of who has sent the message, as a part of what the message asks for; see [Client.CallTool].
func (m *Message) CallTool(ctx context.Context, tool string, arguments any) (*ToolCall, error) {
	return m.c.callTool(ctx, &wire.Frame{Type: "call_tool", To: m.From, ToolName: tool, ParentID: m.RequestID()}, arguments)
}

func (c *Client) callTool(ctx context.Context, q *wire.Frame, arguments any) (*ToolCall, error) {
	err := ctx.Err()
	if err != nil {
		return nil, err
	}
	if q.Arguments, err = encode(arguments); err != nil {
		return nil, err
	}
	q.ID = newID("t")
	if end, ok := ctx.Deadline(); ok {
		q.DeadlineMS = max(1, time.Until(end).Milliseconds())
	}
	if c.cfg.Traceparent != nil {
		q.Traceparent = c.cfg.Traceparent(ctx)
	}
	t := &ToolCall{c: c, id: q.ID, ready: make(chan struct{}, 1), read: time.Now(), f: &frame{other: q, id: q.ID, body: q.Arguments}}
	t.f.await()
	c.mu.Lock()
	c.tools[t.id] = t
	t.stop = context.AfterFunc(ctx, func() { t.fail(context.Cause(ctx)) })
	c.mu.Unlock()
	if err := c.out.add(ctx, t.f); err != nil {
		t.fail(err)
		return nil, err
	}
	return t, nil
}

// Next returns the next piece of the answer. It blocks while there is none, and returns io.EOF behind the last one: then
// Result has what comes behind them.
func (t *ToolCall) Next(ctx context.Context) (ToolAnswer, error) {
	defer t.c.mail.expect()()
	for done := t.f.done; ; {
		if a, ok, err := t.take(); ok || err != nil {
			return a, err
		}
		select {
		case <-t.ready:
		case <-done:
			if t.f.err != nil {
				t.fail(t.f.err)
			}
			done = nil // its end has come
		case <-t.c.done:
			t.fail(t.c.Err())
		case <-ctx.Done():
			return ToolAnswer{}, ctx.Err()
		}
	}
}

// Chunks yields the pieces of the answer as they come; the last pair has the error, if it ended with one.
func (t *ToolCall) Chunks() iter.Seq2[ToolAnswer, error] {
	return func(yield func(ToolAnswer, error) bool) {
		for {
			a, err := t.Next(context.Background())
			if ended(err) || !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// Result waits for the end of the answer and returns what stands there: the whole answer, where it did not come in pieces.
// Pieces that were not read are passed over.
func (t *ToolCall) Result(ctx context.Context) (ToolAnswer, error) {
	for {
		switch _, err := t.Next(ctx); {
		case ended(err):
			t.c.mail.mu.Lock()
			defer t.c.mail.mu.Unlock()
			return t.result, nil
		case err != nil:
			return ToolAnswer{}, err
		}
	}
}

// Close waits for the answer no longer. The tool is not told. It never blocks and returns nil.
func (t *ToolCall) Close() error {
	t.fail(ErrCancelled)
	return nil
}

func (t *ToolCall) take() (a ToolAnswer, ok bool, err error) {
	m := t.c.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	t.read = time.Now()
	if len(t.pieces) == 0 {
		return a, false, t.err
	}
	a = t.pieces[0]
	t.pieces = t.pieces[1:]
	t.free(len(a.Body) + frameCost)
	return a, true, nil
}

// free counts out what waits no more. It is called with the mailbox's lock held.
func (t *ToolCall) free(bytes int) {
	t.bytes -= bytes
	t.c.mail.bytes -= bytes
	t.c.mail.freed()
}

// fail ends the call here. One that has ended stays as it is, but for pieces that nobody has read.
func (t *ToolCall) fail(err error) {
	t.c.mail.mu.Lock()
	t.end(err)
	t.pieces = nil
	t.free(t.bytes)
	t.c.mail.mu.Unlock()
	t.over()
}

// end is called with the mailbox's lock held; over must follow.
func (t *ToolCall) end(err error) {
	if t.err == nil {
		t.err = err
	}
	signal(t.ready)
}

// over forgets a call that has ended.
func (t *ToolCall) over() {
	t.c.mu.Lock()
	t.stop()
	delete(t.c.tools, t.id)
	t.c.mu.Unlock()
	t.c.out.answered(t.id, nil)
}

// answeredTool takes in what a tool answers.
func (c *Client) answeredTool(f *wire.Frame) {
	c.mu.Lock()
	t := c.tools[f.ID]
	c.mu.Unlock()
	if t != nil && t.deliver(f) {
		t.over()
	}
}

// deliver takes in a piece, or the end. It reports whether that was the end. Behind what the mailbox has dropped nothing is taken in: the call is
// sent again on the next connection, and all its pieces come again.
func (t *ToolCall) deliver(f *wire.Frame) bool {
	m := t.c.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shed || t.err != nil {
		return false
	}
	a := ToolAnswer{slices.Clone(f.Body), f.Media, f.Item}
	if f.Type == "tool.result" {
		t.result = a
		if f.Error != nil {
			t.end(&ToolError{agora.Errorf(agora.Code(f.Error.Code), "%s", f.Error.Message), f.Error.Path})
		} else {
			t.end(io.EOF)
		}
		return true
	}
	if f.Index != t.index { // one that came before
		return false
	}
	t.index++
	t.pieces = append(t.pieces, a)
	t.free(-len(a.Body) - frameCost)
	signal(t.ready)
	return false
}

// stalledTool returns the call with most bytes among those that have not been read for too long. It is called with the mailbox's lock held.
func (c *Client) stalledTool(now time.Time) (worst *ToolCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tools {
		if len(t.pieces) > 0 && now.Sub(t.read) >= c.cfg.Stall && (worst == nil || t.bytes > worst.bytes) {
			worst = t
		}
	}
	return worst
}
