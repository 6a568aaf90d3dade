package iat

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/iat"
)

// request asks an agent, and answers with its response, or with events: its chunks, and then the response.
func (d *Door) request(x *web.Exchange, e *iat.Envelope, s *saying) error {
	x.Last()
	return x.UntilDrained(errDrains, func(ctx context.Context) error {
		a, err := x.Actor.Call(ctx, s.as, s.callOf(e))
		if err != nil {
			return err
		}
		defer a.Close()
		r := &responder{door: d, exchange: x, asked: e, answer: a, as: s.as}
		if x.WantsEvents() {
			return r.stream(ctx)
		}
		return r.gather(ctx)
	})
}

// answered notes that the answer has come to its end. Agents of other dialects say nothing of the tasks that this ends.
func (r *responder) answered(ctx context.Context, m *agora.Message) {
	if r.asked.Action == iat.ActionExecute && m.Meta.Dialect != iat.Dialect {
		r.door.done(ctx, presence.Execute{
			Tenant: r.exchange.Actor.Principal().Tenant, Callee: agora.AgentID(r.asked.To), Caller: r.as, Request: r.asked.ID,
		})
	}
}

var errDrains = &agora.Error{Code: agora.Unavailable, Message: "the edge is shutting down: post it again", RetryAfter: time.Second}

// responder says the answer of a call as envelopes.
type responder struct {
	door     *Door
	exchange *web.Exchange
	asked    *iat.Envelope
	as       agora.AgentID // who asked
	answer   *call.Answer
}

// append appends a part of the answer as an envelope; nothing where it shows none.
func (r *responder) append(dst []byte, m *agora.Message) []byte {
	if !iat.Shows(m) {
		return dst
	}
	return iat.AppendEnvelope(dst, m, iat.Delivery{Parent: r.asked.ID, Time: r.door.now(), Trace: cmp.Or(r.asked.Trace, madeTrace(m))})
}

// appendEvent appends a part of the answer as an event; nothing where it shows none.
func (r *responder) appendEvent(lines []byte, m *agora.Message) []byte {
	if !iat.Shows(m) {
		return lines
	}
	lines = web.BeginEvent(lines, 0)
	return web.EndEvent(r.append(lines, m), len(lines))
}

// maxGathered is how many bytes of streamed text a response may hold.
const maxGathered = 4 << 20

// gather answers with the response alone. Of an answer that is streamed by who ends it with nothing, its text is the
// response, as that of a chunk.
func (r *responder) gather(ctx context.Context) error {
	var text []byte
	for {
		m, err := r.answer.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return agora.Errorf(agora.Unavailable, "the answer has no end")
		case err != nil:
			return err
		case m.Part == agora.Chunk:
			if m.Meta.Dialect == iat.Dialect || m.Media != agora.MediaText {
				continue
			}
			if text = append(text, m.Body...); len(text) > maxGathered {
				return agora.Errorf(agora.MessageTooLarge, "the answer has more than %d bytes: accept text/event-stream", maxGathered)
			}
			continue
		case m.Part == agora.Start:
			continue
		}
		if m.Part == agora.End && m.Body == nil && text != nil {
			m.Body = append(append([]byte(`{"text":`), wire.AppendBody(nil, &agora.Message{Body: text, Media: agora.MediaText})...), '}')
		}
		r.answered(ctx, &m)
		return r.exchange.AnswerBytes(http.StatusOK, media, append(r.append(nil, &m), '\n'))
	}
}

// flushBytes is how much of an answer is written at once at most.
const flushBytes = 64 << 10

// stream answers with an event for each part.
func (r *responder) stream(ctx context.Context) error {
	events, err := r.exchange.EventsEvery(r.door.cfg.KeepAlive)
	if err != nil {
		return err
	}
	var lines []byte
	for {
		m, err := r.answer.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return about(r.asked, r.as, err) // which is the last event
		}
		if m.Part == agora.Whole || m.Part == agora.End {
			r.answered(ctx, &m)
		}
		lines = r.appendEvent(lines, &m)
		if len(lines) == 0 || r.answer.Buffered() && len(lines) < flushBytes && m.Part == agora.Chunk {
			continue
		}
		if err := events.SendLines(lines); err != nil {
			return err
		}
		lines = lines[:0]
	}
}
