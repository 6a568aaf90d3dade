package client

import (
	"context"
	"encoding/json"

	"github.com/agora-relay/agora/internal/rawjson"
)

// Reply replies to a request of which no more is at hand than who sent it and
// its request_id, which may be empty. [Message.Reply] is the usual way.
func (c *Client) Reply(ctx context.Context, to, requestID string, payload any) error {
	body, err := replyBody(payload, rawID(requestID))
	if err != nil {
		return err
	}
	return c.sender.send(ctx, &frame{typ: "reply", to: laneKey{agent: to}, body: body})
}

// ReplyStream is Reply with a stream; see [Message.ReplyStream].
func (c *Client) ReplyStream(ctx context.Context, to, requestID string, payload any) (*Stream, error) {
	body, err := replyBody(payload, rawID(requestID))
	if err != nil {
		return nil, err
	}
	return c.sender.openStream(ctx, &frame{typ: "reply", to: laneKey{agent: to}, stream: newID("s"), more: true, body: body}, nil)
}

func rawID(id string) json.RawMessage {
	if id == "" {
		return nil
	}
	return rawjson.AppendString(nil, id)
}

// replyBody encodes the payload of a reply, with the request's id in it where there is one.
func replyBody(payload any, id json.RawMessage) (json.RawMessage, error) {
	body, err := encode(payload)
	if err != nil || id == nil {
		return body, err
	}
	return withRequestID(body, id)
}
