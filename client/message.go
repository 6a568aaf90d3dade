package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"time"

	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

var _ io.ReadCloser = (*Message)(nil)

// Message is what another agent sent or replied. If Stream is set, its text
// comes by Chunks, Next or Read while the sender still writes; it must be read to its end, or
// closed.
type Message struct {
	From        string
	IsReply     bool            // a reply, not a request
	Payload     json.RawMessage // as sent, byte for byte; nil when there was none
	Media       string          // media type of what Payload is a string of base64 of; empty where it is JSON
	Stream      bool            // parts follow the payload
	StreamID    string          // of a streamed message
	Seq         uint64          // position in the mailbox
	Redelivered bool            // it may have been given to an earlier run of this program, or stored twice
	Deadline    time.Time       // when the sender stops waiting; zero: not known
	Traceparent string          // the trace that it belongs to, as W3C Trace Context writes it; empty: none

	named  string // the request that it is or answers, where that stands beside the payload
	sender *sender
	box    *mailbox
	ticket uint64
	in     *inStream               // nil unless Stream
	ends   context.CancelCauseFunc // of its Context; nil where that was not asked for
}

// RequestID returns the name of the request that the message is or answers: the one beside its payload, as messages
// that cross dialects have it, or else the payload's request_id; "" where it has none.
func (m *Message) RequestID() string {
	if m.named != "" {
		return m.named
	}
	raw, ok := member(m.Payload, requestIDKey)
	if !ok {
		return ""
	}
	if raw[0] == '"' {
		return rawjson.Unquote(raw)
	}
	return string(raw)
}

// Chunks yields the parts of the stream as they come, each as it was sent, but that
// half a character at the end of one, half of an escaped surrogate pair, comes with the other
// half; what stays half is U+FFFD. It ends after the last one; a stream that has no normal end yields an error
// last: an *agora.Error with STREAM_ABORTED or TIMEOUT, or [ErrCancelled]. A
// message that is not streamed has no chunks.
func (m *Message) Chunks() iter.Seq2[string, error] {
	if m.in == nil {
		return func(func(string, error) bool) {}
	}
	return m.in.all(context.Background())
}

// Next returns the next part of the stream. It blocks while there is none and
// returns io.EOF after the normal end.
func (m *Message) Next(ctx context.Context) (string, error) {
	if m.in == nil {
		return "", io.EOF
	}
	return m.in.next(ctx)
}

// Text returns all the text of the stream that was not read yet, once it has
// ended; with an error, what there was before it.
func (m *Message) Text(ctx context.Context) (string, error) {
	if m.in == nil {
		return "", nil
	}
	return m.in.text(ctx)
}

// EndPayload returns the payload of the stream's normal end, byte for byte, once all of the stream was read: what a
// dialect has to say behind the text. It is nil where there is none.
func (m *Message) EndPayload() json.RawMessage {
	if m.in == nil {
		return nil
	}
	return m.in.payload()
}

// Read implements [io.Reader] over the text of the stream.
func (m *Message) Read(p []byte) (int, error) {
	if m.in == nil {
		return 0, io.EOF
	}
	return m.in.fill(p)
}

// Close gives up what has not been read. The sender of a stream that has not
// ended gets a cancel. It never blocks and returns nil.
func (m *Message) Close() error {
	if m.in != nil {
		m.in.close(m.key())
	}
	return nil
}

// Err returns the error that a reply says in place of an answer, {"error":{"code","message"}}: in its payload, or in
// that of its stream's end once all of that was read. It is nil where it says none; errors are [agora.Error] with their
// code.
func (m *Message) Err() error {
	payload := m.Payload
	if m.Stream {
		payload = m.EndPayload()
	}
	if e := wire.ReplyError(payload); e != nil && m.IsReply {
		return e
	}
	return nil
}

func (m *Message) key() streamKey { return streamKey{m.From, m.StreamID} }

// Reply replies with a payload, and returns when it is stored. The
// request_id of the message's payload is copied into one that is an object, or nil. Other JSON has it beside
// itself, and so has every payload where the request was named there; a request_id that is no string can't stand there.
func (m *Message) Reply(ctx context.Context, payload any) error {
	body, err := encode(payload)
	if err != nil {
		return err
	}
	f := &frame{typ: "reply", to: laneKey{agent: m.From}, body: body, request: m.named}
	id, asked := member(m.Payload, requestIDKey)
	switch {
	case !asked:
	case body != nil && !isObject(body) && (m.named != "" || id[0] == '"'):
		f.request = m.RequestID()
	default:
		if f.body, err = withRequestID(body, id); err != nil {
			return err
		}
	}
	return m.sender.send(ctx, f)
}

// ReplyStream replies with a stream; see [Client.OpenStream]. A streamed
// message without a request_id is answered under its own stream id, so that
// the sender can tell what the reply belongs to.
func (m *Message) ReplyStream(ctx context.Context, payload any) (*Stream, error) {
	id, asked := member(m.Payload, requestIDKey)
	stream := m.StreamID
	if asked || m.named != "" || stream == "" {
		stream = newID("s")
	}
	body, err := replyBody(payload, id)
	if err != nil {
		return nil, err
	}
	var ends func()
	if m.ends != nil {
		ends = func() { m.ends(ErrCancelled) }
	}
	return m.sender.openStream(ctx, &frame{typ: "reply", to: laneKey{agent: m.From}, stream: stream, more: true, body: body, request: m.named}, ends)
}

// Context returns a context for what it takes to answer the message. It ends with ctx, when the sender waits no longer
// by its Deadline, and with the cause [ErrCancelled] when the sender has given up the request, or a streamed reply to
// it. It is asked for once, before a ReplyStream; the caller owes a call of the function, which frees it.
func (m *Message) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	free := func() {}
	if !m.Deadline.IsZero() {
		ctx, free = context.WithDeadline(ctx, m.Deadline)
	}
	ctx, ends := context.WithCancelCause(ctx)
	key, box := requestOf{m.From, m.RequestID()}, m.box
	box.mu.Lock()
	defer box.mu.Unlock()
	m.ends = ends
	if key.id != "" && box.unsaid.has(key) {
		ends(ErrCancelled)
	} else if key.id != "" && box.asked[key] == nil {
		if box.asked == nil {
			box.asked = map[requestOf]*Message{}
		}
		box.asked[key] = m
	}
	return ctx, func() {
		ends(nil)
		free()
		box.mu.Lock()
		defer box.mu.Unlock()
		if box.asked[key] == m {
			delete(box.asked, key)
		}
	}
}

// Ack acknowledges a message of [Client.Receive]. One that is streamed is acknowledged when its stream was read to its
// end or closed, as well. It never blocks; a second one changes nothing.
func (m *Message) Ack() { m.done() }

// done acknowledges the message, one with parts once they were read to their end or given up.
func (m *Message) done() { m.box.done(m.ticket, m.in) }
