package client

import (
	"context"
	"encoding/json"

	"github.com/agora-relay/agora"
)

// requestIDKey is the member of payloads that ties a reply to its request.
const requestIDKey = "request_id"

// withRequestID puts a request_id, raw JSON, into a payload that is an object
// or nothing. One that the payload has already stays.
func withRequestID(payload json.RawMessage, id []byte) (json.RawMessage, error) {
	if payload != nil && !isObject(payload) {
		return nil, agora.Errorf(agora.InvalidRequest, "the payload must be an object to carry a request_id")
	}
	if _, there := member(payload, requestIDKey); there {
		return payload, nil
	}
	return withMember(payload, requestIDKey, id), nil
}

// Request sends a payload, an object or nil, and returns the reply to it,
// which may still be streaming. It puts a request_id into the payload, unless
// that has one. Only the agent that was asked can answer: what others send under the
// same request_id comes as any other message. The deadline of ctx travels with the request. When ctx ends,
// Request returns its error and a reply that comes later is dropped; a streamed reply, also
// one that was returned, is cancelled then, and the agent that was asked learns where its reply has not begun.
//
// A reconnect in between changes nothing. [ErrUnknown] is returned when it
// came too late to know whether the request was stored.
func (c *Client) Request(ctx context.Context, to string, payload any) (*Message, error) {
	r, body, err := c.sender.question(to, "", payload)
	if err != nil {
		return nil, err
	}
	f := &frame{typ: "send", to: laneKey{agent: to}, id: r.id, body: body}
	f.deadline, _ = ctx.Deadline()
	f.await()
	if err := c.out.add(ctx, f); err != nil {
		c.asks.abandon(r, false)
		return nil, err
	}
	return c.sender.awaitReply(ctx, r, f)
}

// bound ties the stream of a reply to the context of its request.
func (m *Message) bound(ctx context.Context) *Message {
	if m.in != nil {
		context.AfterFunc(ctx, func() { m.Close() })
	}
	return m
}

// Exchange is a streamed question and its reply: what is asked is written,
// as to any [Stream], while the reply may already be read.
type Exchange struct {
	*Stream
	r *request
}

// RequestStream begins a question whose text is streamed. Its context governs
// the question and the reply, as with [Client.Request].
func (c *Client) RequestStream(ctx context.Context, to string, payload any) (*Exchange, error) {
	id := newID("s")
	r, body, err := c.sender.question(to, id, payload)
	if err != nil {
		return nil, err
	}
	s, err := c.sender.openStream(ctx, &frame{typ: "send", to: laneKey{agent: to}, stream: id, more: true, body: body}, nil)
	if err != nil {
		c.asks.abandon(r, true)
		return nil, err
	}
	return &Exchange{s, r}, nil
}

// Reply waits for the reply. It is called once.
func (e *Exchange) Reply() (*Message, error) { return e.sender.awaitReply(e.ctx, e.r, e.out.start) }
