package ws

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/p2p"
)

// callTool calls a tool of an agent.
func callTool(c *conn, s *edge.Session, f *wire.Frame) error {
	t := carrier.Tool{Name: f.ToolName, Arguments: bytes.Clone(f.Arguments), Parent: f.ParentID}
	return startCall(c, f.ID, callOf(s, f), func(c *conn, q *openCall) (*wire.Frame, error) {
		a, err := c.door.cfg.Carriers.CallTool(q.ctx, q.Call, t)
		return outcome(c, q, a, err, "tool.chunk", "tool.result")
	})
}

// handOff hands a request to an agent.
func handOff(c *conn, s *edge.Session, f *wire.Frame) error {
	h := carrier.Handoff{Method: strings.ToUpper(f.Method), Path: f.Path, Params: bytes.Clone(f.Params), Input: bytes.Clone(f.Input)}
	if err := h.Check(); err != nil {
		return err
	}
	return startCall(c, f.ID, callOf(s, f), func(c *conn, q *openCall) (*wire.Frame, error) {
		a, err := c.door.cfg.Carriers.Handoff(q.ctx, q.Call, h)
		return outcome(c, q, a, err, "handoff.chunk", "handoff.result")
	})
}

// askCard asks an agent for its card, which is all that is told. It takes no session.
func askCard(c *conn, _ *edge.Session, f *wire.Frame) error {
	as := carrier.Call{Actor: c.Actor, As: asker(c), To: agora.Agent{ID: agora.AgentID(f.To)}}
	return startCall(c, f.ID, as, func(c *conn, q *openCall) (*wire.Frame, error) {
		a, r, err := c.door.cfg.Carriers.Card(q.ctx, q.Call)
		if err != nil {
			return nil, err
		}
		card, err := cardOf(c, &a, r)
		return &wire.Frame{Type: "card", ID: q.id, From: string(q.To.ID), Card: card}, err
	})
}

// asker is in whose name the connection asks: of who has no session that of the one agent that the credentials may be, else one of chance.
func asker(c *conn) agora.AgentID {
	if s := c.session(); s != nil {
		return s.Agent()
	}
	if sole, is := c.Actor.Principal().Sole(); is {
		return sole
	}
	return agora.AgentID("ask-" + strings.ToLower(rand.Text()[:16]))
}

// cardOf is a card as its agent has written it where that is JSON, else what the directory knows of the agent. MESSAGE_TOO_LARGE for one that is too large for a frame.
func cardOf(c *conn, a *agora.Agent, r agora.Registration) (card []byte, err error) {
	if card = r.Body; !json.Valid(card) || !utf8.Valid(card) {
		card = foundAgent(a).Append(nil)
	}
	if len(card) > roomIn(c.frameSize()) {
		return nil, errLargeCard
	}
	return card, nil
}

// outcome tells the pieces of an answer that a call has begun, or of the error that it has come to, and returns what is to be told behind them.
func outcome(c *conn, q *openCall, a carrier.Answer, err error, chunk, result string) (*wire.Frame, error) {
	last := &wire.Frame{Type: result, ID: q.id, From: string(q.To.ID), StatusCode: http.StatusOK}
	begun := err == nil
	if begun {
		defer a.Close()
		err = pieces(c, q, a, chunk, last)
	}
	if err == nil {
		return last, nil
	}
	_, told := errors.AsType[*carrier.Failure](err)
	if !told && q.cancelled() {
		err, begun = errCancelled, true
	}
	last.Error, last.StatusCode = failure(err), p2p.FaultOf(err).Code
	if last.Error == nil || !begun && !told {
		return nil, err
	}
	return last, nil
}

// pieces tells the pieces of an answer, to its end, of which it takes note in the last frame.
func pieces(c *conn, q *openCall, a carrier.Answer, chunk string, last *wire.Frame) error {
	for index := uint32(0); ; {
		m, err := a.Next(q.ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Part == agora.Whole || m.Part == agora.End:
			last.Body, last.Media = answerBody(&m), wire.Media(&m)
		case m.Part == agora.Chunk: // what a streamed answer begins with is for its correlation
			c.queueInTurn(&wire.Frame{
				Type: chunk, ID: q.id, From: last.From, Index: index, HasIndex: true, Body: answerBody(&m), Media: wire.Media(&m), Item: wire.Item(&m),
			})
			index++
		}
	}
}

// answerBody is a part of an answer as JSON; nil where there is none, but for a piece of text.
func answerBody(m *agora.Message) []byte {
	switch {
	case m.Body != nil:
		return wire.AppendBody(nil, m)
	case m.Part == agora.Chunk:
		return []byte(`""`)
	}
	return nil
}

// failure is how a call failed whose agent was reached; nil where the cluster can't tell how it went.
func failure(err error) *wire.Failure {
	e := agora.AsError(err)
	if f, ok := errors.AsType[*carrier.Failure](err); ok {
		return &wire.Failure{Code: string(e.Code), Message: e.Message, Path: f.Path}
	}
	if e.Code == agora.Unavailable {
		return nil
	}
	return &wire.Failure{Code: string(e.Code), Message: e.Message}
}
