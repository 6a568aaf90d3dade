package client

import (
	"context"

	"github.com/agora-relay/agora/wire"
)

// CallTool calls a tool of an agent of any dialect with arguments, any JSON value, or nil for none. It returns once the
// call is on its way, and blocks only while too much is. The context governs the call: its deadline travels with it,
// and when it ends nothing more is waited for.
//
// A reconnect in between changes nothing: the call is made once. What goes wrong is told by the Call: NOT_FOUND,
// AGENT_NOT_FOUND, FORBIDDEN, INVALID_REQUEST where the call was not made, an [AnswerError] where the tool has answered
// that it can't, TIMEOUT, STREAM_ABORTED where its agent has gone, UNAVAILABLE and [ErrUnknown] where nobody can know.
func (c *Client) CallTool(ctx context.Context, to, tool string, arguments any) (*Call, error) {
	return c.sender.callTool(ctx, &wire.Frame{Type: "call_tool", To: to, ToolName: tool}, arguments)
}

// CallTool calls a tool of who has sent the message, as a part of what the message asks for; see [Client.CallTool].
func (m *Message) CallTool(ctx context.Context, tool string, arguments any) (*Call, error) {
	return m.sender.callTool(ctx, &wire.Frame{Type: "call_tool", To: m.From, ToolName: tool, ParentID: m.RequestID()}, arguments)
}
