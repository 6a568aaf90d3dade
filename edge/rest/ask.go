package rest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire"
)

const (
	maxName     = 256     // characters of an Idempotency-Key
	maxGathered = 4 << 20 // bytes of a streamed answer that is asked for in one piece
	maxDeadline = 24 * time.Hour
)

// ask asks an agent: the body is the payload. The answer is the reply's payload, or {"text": …} of one that is streamed; events where the
// request accepts those: reply for a whole one, else start, chunk for each piece of text, and end.
func ask(x *web.Exchange) error {
	id, err := agora.ParseAgentID(x.Request.PathValue("id"))
	if err != nil {
		return err
	}
	q, as, err := asked(x)
	if err != nil {
		return err
	}
	q.Message.To.Agent = id
	x.Last()
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, cancel := context.WithCancelCause(x.Context())
	defer cancel(nil)
	if q.Name != "" { // it is made again elsewhere
		watch.Go(func() {
			select {
			case <-x.Drains():
				cancel(errDrains)
			case <-ctx.Done():
			}
		})
	}
	a, err := x.Actor.Call(ctx, as, q)
	if err != nil {
		return cause(ctx, err)
	}
	defer a.Close()
	if strings.Contains(x.Request.Header.Get("Accept"), "text/event-stream") {
		return cause(ctx, stream(ctx, x, a))
	}
	return cause(ctx, gather(ctx, x, a))
}

var errDrains = &agora.Error{Code: agora.Unavailable, Message: "the edge is shutting down: ask again", RetryAfter: time.Second}

// cause returns why a context ended where that led to an error, else the error.
func cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errDrains) {
		return errDrains
	}
	return err
}

// asked reads what is asked, and in whose name.
func asked(x *web.Exchange) (q call.Request, as agora.AgentID, err error) {
	body, err := x.JSON()
	if err != nil {
		return q, "", err
	}
	query, who := x.Request.URL.Query(), x.Actor.Principal()
	q.Name = x.Request.Header.Get("Idempotency-Key")
	if len([]rune(q.Name)) > maxName || strings.ContainsFunc(q.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return q, "", agora.Errorf(agora.InvalidRequest, "Idempotency-Key must have at most %d printable characters", maxName)
	}
	sole, is := who.Sole()
	switch {
	case query.Get("as") != "":
		if as, err = agora.ParseAgentID(query.Get("as")); err != nil {
			return q, "", err
		}
	case is:
		as = sole
	case q.Name != "":
		as = agora.AgentID("ask-" + call.NewBox(who.Tenant, agora.AgentID(who.Name), q.Name)[:20])
	default:
		as = agora.AgentID("ask-" + strings.ToLower(rand.Text()[:16]))
	}
	if text := query.Get("deadline_ms"); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms < 1 || ms > maxDeadline.Milliseconds() {
			return q, "", agora.Errorf(agora.InvalidRequest, "deadline_ms must be a number of milliseconds, of a day at most")
		}
		q.Within = time.Duration(ms) * time.Millisecond
	}
	q.Box = call.NewBox(who.Tenant, as, q.Name)
	q.Message.Body, q.Message.ID = withRequestID(body, q.Box)
	return q, as, nil
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
func gather(ctx context.Context, x *web.Exchange, a *call.Answer) error {
	var text strings.Builder
	for {
		m, err := a.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return x.Answer(http.StatusOK, map[string]string{"text": text.String()})
		case err != nil:
			return err
		case m.Part == agora.Whole:
			return x.AnswerBytes(http.StatusOK, "application/json", append(payload(&m), '\n')) // as it was said
		case m.Part == agora.Chunk:
			piece, err := textOf(&m)
			if err != nil {
				return err
			}
			if text.WriteString(piece); text.Len() > maxGathered {
				return agora.Errorf(agora.MessageTooLarge, "the answer has more than %d bytes: accept text/event-stream", maxGathered)
			}
		}
	}
}

// names of the events, by the part that they tell.
var names = [...]string{agora.Whole: "reply", agora.Start: "start", agora.Chunk: "chunk", agora.End: "end"}

// stream answers with an event for each part.
func stream(ctx context.Context, x *web.Exchange, a *call.Answer) error {
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

// payload is the body of a part as JSON.
func payload(m *agora.Message) json.RawMessage {
	if m.Body == nil {
		return json.RawMessage("null")
	}
	return wire.AppendBody(nil, m)
}

// textOf returns the text of a chunk.
func textOf(m *agora.Message) (text string, err error) {
	if m.Media == agora.MediaText {
		return string(m.Body), nil
	}
	if err := json.Unmarshal(m.Body, &text); err != nil {
		return "", agora.Errorf(agora.Unavailable, "a part of the answer is no text")
	}
	return text, nil
}
