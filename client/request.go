package client

import (
	"context"
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// requestIDKey is the member of payloads that ties a reply to its request.
const requestIDKey = "request_id"

// request is a question that waits for its reply.
type request struct {
	id     string
	stream string        // of a streamed question; a reply under it is the answer, too
	to     string        // who answers
	reply  chan *Message // takes one
	failed chan error    // takes one
}

// requestKey names a request or a call that was given up: who was asked, and its request_id or id.
type requestKey struct{ to, id string }

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

// question encodes a question and begins to wait for its reply.
func (c *Client) question(to, stream string, payload any) (*request, json.RawMessage, error) {
	body, err := encode(payload)
	if err != nil {
		return nil, nil, err
	}
	body, err = withRequestID(body, rawjson.AppendString(nil, newID("r")))
	if err != nil {
		return nil, nil, err
	}
	r := &request{id: (&Message{Payload: body}).RequestID(), stream: stream, to: to}
	r.reply, r.failed = make(chan *Message, 1), make(chan error, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.requests[r.id]; twice {
		return nil, nil, agora.Errorf(agora.InvalidRequest, "a request with this request_id is under way")
	}
	c.requests[r.id] = r
	return r, body, nil
}

// Request sends a payload, an object or nil, and returns the reply to it,
// which may still be streaming. It puts a request_id into the payload, unless
// that has one. Only the agent that was asked can answer: what others send under the
// same request_id comes as any other message. The deadline of ctx travels with the request. When ctx ends,
// Request returns its error and a reply that comes later is dropped; a streamed reply, also
// one that was returned, is cancelled then.
//
// A reconnect in between changes nothing. [ErrUnknown] is returned when it
// came too late to know whether the request was stored.
func (c *Client) Request(ctx context.Context, to string, payload any) (*Message, error) {
	r, body, err := c.question(to, "", payload)
	if err != nil {
		return nil, err
	}
	f := &frame{typ: "send", to: laneKey{agent: to}, id: r.id, body: body}
	f.deadline, _ = ctx.Deadline()
	f.await()
	if err := c.out.add(ctx, f); err != nil {
		c.abandon(r, false)
		return nil, err
	}
	return c.awaitReply(ctx, r, f)
}

// awaitReply waits for the reply to a question, whose frame may still fail.
func (c *Client) awaitReply(ctx context.Context, r *request, f *frame) (*Message, error) {
	defer c.mail.expect()()
	stored := f.done
	for {
		select {
		case m := <-r.reply:
			return m.bound(ctx), nil
		case err := <-r.failed:
			return nil, err
		case <-stored:
			if f.err != nil {
				c.abandon(r, true)
				return nil, f.err
			}
			stored = nil
		case <-ctx.Done():
			c.out.withdraw(f, ctx.Err())
			c.abandon(r, true)
			return nil, ctx.Err()
		case <-c.done:
			return nil, c.Err()
		}
	}
}

// bound ties the stream of a reply to the context of its request.
func (m *Message) bound(ctx context.Context) *Message {
	if m.in != nil {
		context.AfterFunc(ctx, func() { m.Close() })
	}
	return m
}

// abandon waits no longer. late tells that a reply may still come; one that came just now is given up.
func (c *Client) abandon(r *request, late bool) {
	c.mu.Lock()
	delete(c.requests, r.id)
	if late {
		c.gone.add(requestKey{r.to, r.id})
	}
	c.mu.Unlock()
	select {
	case m := <-r.reply:
		m.Close()
	default:
	}
}

// answer hands a reply to whoever waits for it, if the agent that was asked has sent it. taken tells that nobody else is
// to get it; wanted, that somebody waits. It is called with the mailbox's lock held.
func (c *Client) answer(m *Message) (taken, wanted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := m.RequestID()
	if r := c.requests[id]; r != nil && id != "" && r.to == m.From {
		delete(c.requests, id)
		r.reply <- m
		return true, true
	}
	if id != "" && c.gone.has(requestKey{m.From, id}) {
		return true, false
	}
	for _, r := range c.requests {
		if r.stream != "" && r.stream == m.StreamID && r.to == m.From {
			delete(c.requests, r.id)
			r.reply <- m
			return true, true
		}
	}
	return false, false
}

// gaveUp reports whether a request or a call was given up.
func (c *Client) gaveUp(key requestKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone.has(key)
}

// failRequest fails a question by its request_id; it returns false when there is none.
func (c *Client) failRequest(id string, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests[id]
	if r == nil {
		return false
	}
	delete(c.requests, id)
	r.failed <- err
	return true
}

// cancelOf tells the sender of a stream that its rest is not wanted.
func (c *Client) cancelOf(key streamKey) {
	c.out.force(&frame{typ: "cancel", to: laneKey{agent: key.peer}, stream: key.id})
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
	r, body, err := c.question(to, id, payload)
	if err != nil {
		return nil, err
	}
	s, err := c.openStream(ctx, &frame{typ: "send", to: laneKey{agent: to}, stream: id, more: true, body: body}, nil)
	if err != nil {
		c.abandon(r, true)
		return nil, err
	}
	return &Exchange{s, r}, nil
}

// Reply waits for the reply. It is called once.
func (e *Exchange) Reply() (*Message, error) { return e.c.awaitReply(e.ctx, e.r, e.start) }
