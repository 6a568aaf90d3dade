package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire"
)

// maxGathered is how many bytes of a streamed answer may be asked for in one piece.
const maxGathered = 4 << 20

// ask asks an agent: the body is the payload. The answer is the reply's payload, or {"text": …} of one that is
// streamed, with "payload" where its end has one; events where the request accepts those: reply for a whole one, else
// start, chunk for each piece of text, and end.
func ask(x *web.Exchange) error {
	body, err := x.JSON()
	if err != nil {
		return err
	}
	t, err := termsOf(x)
	if err != nil {
		return err
	}
	q := call.Request{Name: t.name, Within: t.within, Box: call.NewBox(x.Actor.Principal().Tenant, t.as, t.name)}
	q.Message.To.Agent = t.to
	q.Message.Body, q.Message.ID = withRequestID(body, q.Box)
	return t.respond(x, func(ctx context.Context) (carrier.Answer, error) {
		a, err := x.Actor.Call(ctx, t.as, q)
		if err != nil {
			return nil, err // and no Answer that holds a nil
		}
		return carrier.Replies(a), nil
	})
}

// withRequestID puts the request's id into a payload that is an object without one, and returns it.
func withRequestID(payload []byte, id string) ([]byte, string) {
	if has := wire.RequestIDOf(payload); has != "" {
		return payload, has
	}
	b := bytes.TrimSpace(payload)
	if b[0] != '{' {
		return payload, id
	}
	inside := bytes.TrimSpace(b[1 : len(b)-1])
	out := append([]byte{'{'}, inside...)
	if len(inside) > 0 {
		out = append(out, ',')
	}
	return append(strconv.AppendQuote(append(out, `"request_id":`...), id), '}'), id
}

// gather answers with the whole answer.
func gather(ctx context.Context, x *web.Exchange, a carrier.Answer) error {
	var text strings.Builder
	var end json.RawMessage
	for {
		m, err := a.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return x.AnswerBytes(http.StatusOK, "application/json", gathered(text.String(), end))
		case err != nil:
			return err
		case m.Part == agora.Whole:
			return x.AnswerBytes(http.StatusOK, "application/json", append(payload(&m), '\n')) // as it was said
		case m.Part == agora.Chunk:
			piece, err := wire.ChunkText(&m)
			if err != nil {
				return err
			}
			if text.WriteString(piece); text.Len() > maxGathered {
				return agora.Errorf(agora.MessageTooLarge, "the answer has more than %d bytes: accept text/event-stream", maxGathered)
			}
		case m.Part == agora.End && m.Body != nil:
			end = payload(&m)
		}
	}
}

// gathered is a streamed answer in one piece: its text, and the payload of its end as it was said, where that has one.
func gathered(text string, end json.RawMessage) []byte {
	b := wire.AppendBody([]byte(`{"text":`), &agora.Message{Media: agora.MediaText, Body: []byte(text)})
	if end != nil {
		b = append(append(b, `,"payload":`...), end...)
	}
	return append(b, "}\n"...)
}

// names of the events, by the part that they tell.
var names = [...]string{agora.Whole: "reply", agora.Start: "start", agora.Chunk: "chunk", agora.End: "end"}

// stream answers with an event for each part.
func stream(ctx context.Context, x *web.Exchange, a carrier.Answer) error {
	events, err := x.Events()
	if err != nil {
		return err
	}
	for {
		m, err := a.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := events.Send(web.Event{Name: names[m.Part], Data: payload(&m)}); err != nil {
			return err
		}
	}
}

// payload is the body of a part as JSON: that of a chunk is a string. What is neither JSON nor text is
// {"media","data"}, whose data is base64, and "item" where it is a part of one.
func payload(m *agora.Message) json.RawMessage {
	if media := wire.Media(m); media != "" {
		b := wire.AppendBody([]byte(`{"media":`), &agora.Message{Media: agora.MediaText, Body: []byte(media)})
		b = wire.AppendBody(append(b, `,"data":`...), m)
		if item := wire.Item(m); item > 0 {
			b = strconv.AppendUint(append(b, `,"item":`...), item, 10)
		}
		return append(b, '}')
	}
	switch {
	case m.Part == agora.Chunk:
		return wire.AppendChunk(nil, m)
	case m.Body == nil:
		return json.RawMessage("null")
	}
	return wire.AppendBody(nil, m)
}
