package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// messageLine is a message, or a part of one, as a line of JSON.
type messageLine struct {
	Type        string          `json:"type"` // message, reply, chunk, end, cancel, error
	From        string          `json:"from"`
	StreamID    string          `json:"stream_id,omitempty"`
	Stream      bool            `json:"stream,omitempty"`
	RequestID   string          `json:"request_id,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Chunk       *string         `json:"chunk,omitempty"`
	Seq         uint64          `json:"seq,omitempty"`
	Redelivered bool            `json:"redelivered,omitempty"`
	Code        string          `json:"code,omitempty"`
	Message     string          `json:"message,omitempty"`
}

// messageLines prints the head of a message.
func (p *printer) messageHead(m *client.Message) error {
	l := messageLine{
		Type: "message", From: m.From, StreamID: m.StreamID, Stream: m.Stream,
		RequestID: m.RequestID(), Payload: m.Payload, Seq: m.Seq, Redelivered: m.Redelivered,
	}
	if m.IsReply {
		l.Type = "reply"
	}
	return p.jsonLine(l)
}

// messageParts prints the parts of a streamed message, a line each.
func (p *printer) messageParts(ctx context.Context, m *client.Message) error {
	for text, err := range chunks(ctx, m.Next) {
		l := messageLine{Type: "chunk", From: m.From, StreamID: m.StreamID, Chunk: &text}
		if err != nil {
			l = messageLine{From: m.From, StreamID: m.StreamID}
			if l.Type, l.Code, l.Message = told(err); l.Type == "" {
				return err
			}
		}
		if printErr := p.jsonLine(l); printErr != nil || err != nil {
			return cmpErr(err, printErr)
		}
	}
	return p.jsonLine(messageLine{Type: "end", From: m.From, StreamID: m.StreamID, Payload: m.EndPayload()})
}

// told returns how a stream has ended, as JSON tells it; no type where it has not, but this program ends, which is no
// news of the stream.
func told(err error) (typ, code, message string) {
	if e, ok := errors.AsType[*agora.Error](err); ok {
		return "error", string(e.Code), e.Message
	}
	if errors.Is(err, client.ErrCancelled) {
		return "cancel", "", ""
	}
	return "", "", ""
}

// cmpErr returns the first error that there is.
func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// eventLine is what happened in a space, as a line of JSON.
type eventLine struct {
	Type        string          `json:"type"` // event, chunk, end, cancel, members, error
	Space       string          `json:"space"`
	From        string          `json:"from,omitempty"`
	EventID     string          `json:"event_id,omitempty"`
	Stream      bool            `json:"stream,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
	Chunk       *string         `json:"chunk,omitempty"`
	Members     []string        `json:"members,omitempty"`
	Joined      string          `json:"joined,omitempty"`
	Left        string          `json:"left,omitempty"`
	Seq         uint64          `json:"seq,omitempty"`
	Redelivered bool            `json:"redelivered,omitempty"`
	Code        string          `json:"code,omitempty"`
	Message     string          `json:"message,omitempty"`
}

func (p *printer) eventHead(e *client.Event) error {
	l := eventLine{
		Type: "event", Space: e.Space, From: e.From, EventID: e.ID, Stream: e.Stream,
		Data: e.Data, Seq: e.Seq, Redelivered: e.Redelivered,
	}
	if e.Roster != nil {
		l.Type, l.Members, l.Joined, l.Left = "members", e.Roster.Members, e.Roster.Joined, e.Roster.Left
	}
	return p.jsonLine(l)
}

// eventParts prints the text of a streamed event, a line for each part.
func (p *printer) eventParts(ctx context.Context, e *client.Event) error {
	for text, err := range chunks(ctx, e.Next) {
		l := eventLine{Type: "chunk", Space: e.Space, EventID: e.ID, Chunk: &text}
		if err != nil {
			l = eventLine{Space: e.Space, EventID: e.ID}
			if l.Type, l.Code, l.Message = told(err); l.Type == "" {
				return err
			}
		}
		if printErr := p.jsonLine(l); printErr != nil || err != nil {
			return cmpErr(err, printErr)
		}
	}
	return p.jsonLine(eventLine{Type: "end", Space: e.Space, EventID: e.ID})
}
