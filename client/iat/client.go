package iat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

// Client sends envelopes, asks, and looks at what there is. Its methods may be called at the same time. It has no
// goroutine of its own.
type Client struct {
	cfg    Config
	urls   []string
	at     atomic.Uint32 // which edge is asked next, modulo their number
	http   *http.Client
	own    *http.Transport // nil where the configuration has one
	life   context.Context // ends with Close
	finish context.CancelCauseFunc
}

// New returns a client. It connects to nothing yet; its errors are those of the configuration. The caller owes it a
// call of Close.
func New(cfg Config) (*Client, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	urls, err := cfg.addresses()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg.withDefaults(), urls: urls, http: cfg.HTTP}
	if c.http == nil {
		c.own = c.cfg.transport()
		c.http = &http.Client{Transport: c.own}
	}
	c.life, c.finish = context.WithCancelCause(context.Background())
	return c, nil
}

// Close ends everything that continues with [ErrClosed], and closes connections. It may be called more than once.
func (c *Client) Close() error {
	c.finish(ErrClosed)
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// within returns ctx, which ends with the client as well.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Send sends an envelope that nothing answers: a notification, a response or a chunk. It fills in what is empty of
// MsgID, From and Timestamp, and returns when the cluster has stored it, once whatever broke on the way. Errors: an
// [*Error], that of ctx, [ErrClosed].
func (c *Client) Send(ctx context.Context, e *Envelope) error {
	body, err := c.written(e)
	if err != nil {
		return err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.persist(ctx, httpRequest{method: http.MethodPost, path: "/a2a", body: body})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Ask sends a request and returns its response. It fills in what is empty of Type, MsgID, From and Timestamp. Sent
// again under one MsgID, a request is answered again and not done again, within its deadline. A response that has
// nothing but what came before it in chunks has their text as its payload. It blocks until there is a response, or as
// long as ctx lasts, which is the request's deadline where Metadata.DeadlineMS is 0. Errors: an [*Error] that the
// cluster or the agent has answered, that of ctx, [ErrClosed].
func (c *Client) Ask(ctx context.Context, e *Envelope) (*Envelope, error) {
	return c.response(ctx, e, nil)
}

// response is [Client.Ask]; more is that of ask.
func (c *Client) response(ctx context.Context, e *Envelope, more func(error) bool) (*Envelope, error) {
	a, err := c.ask(ctx, e, more)
	if err != nil {
		return nil, err
	}
	defer a.close()
	var text strings.Builder
	for {
		e, err := a.next()
		if err != nil {
			return nil, err
		}
		if e.Header.Type != ChunkType {
			if s := string(e.Payload); text.Len() > 0 && (s == "" || s == "{}") {
				e.Payload = Text(text.String())
			}
			return e, nil
		}
		if text.Len() < maxGathered {
			text.WriteString(chunkOf(e).Text)
		}
	}
}

// maxGathered bounds the text of chunks that stands in for a response, in bytes.
const maxGathered = 4 << 20

// payloadFrom asks an agent for something, and returns the payload of its response.
func (c *Client) payloadFrom(ctx context.Context, to, parent, trace string, payload json.RawMessage) (json.RawMessage, error) {
	e, err := c.Ask(ctx, &Envelope{Header: Header{ParentID: parent, To: to}, Metadata: Metadata{TraceID: trace}, Payload: payload})
	if err != nil {
		return nil, err
	}
	return e.Payload, nil
}

// CallTool has an agent call one of its tools, and returns the payload of its response. Arguments are any value that is
// a JSON object; nil for none. Errors are those of [Client.Ask].
func (c *Client) CallTool(ctx context.Context, to, tool string, arguments any) (json.RawMessage, error) {
	payload, err := toolCall(tool, arguments)
	if err != nil {
		return nil, err
	}
	return c.payloadFrom(ctx, to, "", "", payload)
}

func toolCall(tool string, arguments any) (json.RawMessage, error) {
	return object(member{"action", "call_tool"}, member{"tool_name", tool}, member{"arguments", arguments})
}

// written fills in what is empty of an envelope, and returns it as it is sent.
func (c *Client) written(e *Envelope) ([]byte, error) {
	if c.cfg.Agent == "" {
		return nil, agora.Errorf(agora.InvalidRequest, "the client is no agent: Config.Agent is empty")
	}
	if e.Payload != nil && !json.Valid(e.Payload) {
		return nil, agora.Errorf(agora.InvalidRequest, "payload is no JSON")
	}
	h := &e.Header
	if h.MsgID == "" {
		h.MsgID = rand.Text()
	}
	if h.From == "" {
		h.From = c.cfg.Agent
	}
	if h.Timestamp == 0 {
		h.Timestamp = time.Now().Unix()
	}
	return e.append(nil)
}
