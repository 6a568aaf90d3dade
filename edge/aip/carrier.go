package aip

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/wire/aip"
)

// byMail reaches nodes by their mailboxes, as agents of any dialect are: so a call that is made again is done once.
// What it adds is that the failure of a toolbox is told from its answer.
type byMail struct{ carrier.Carrier }

// Handoff implements carrier.Carrier.
func (m byMail) Handoff(ctx context.Context, c carrier.Call, h carrier.Handoff) (carrier.Answer, error) {
	a, err := m.Carrier.Handoff(ctx, c, h)
	if err != nil {
		return nil, err
	}
	return toolAnswer{a}, nil
}

// CallTool implements carrier.Carrier.
func (m byMail) CallTool(ctx context.Context, c carrier.Call, t carrier.Tool) (carrier.Answer, error) {
	a, err := m.Carrier.CallTool(ctx, c, t)
	if err != nil {
		return nil, err
	}
	return toolAnswer{a}, nil
}

// toolAnswer is the answer of a toolbox.
type toolAnswer struct{ carrier.Answer }

// Next implements carrier.Answer.
func (a toolAnswer) Next(ctx context.Context) (agora.Message, error) {
	m, err := a.Answer.Next(ctx)
	if err == nil && m.Part == agora.Whole {
		if e := failureIn(&m); e != nil {
			return agora.Message{}, &carrier.Failure{Err: e}
		}
	}
	return m, err
}

// failure is the payload that says that a tool has failed.
func failure(e *agora.Error) []byte {
	b, err := json.Marshal(toolFailure{Error: &failureText{e.Code, e.Message}})
	if err != nil {
		return []byte(`{"error":{"code":"STREAM_ABORTED","message":"the tool has failed"}}`)
	}
	return b
}

// toolFailure is a payload that says that a tool has failed.
type toolFailure struct {
	Error *failureText `json:"error"`
}

type failureText struct {
	Code    agora.Code `json:"code"`
	Message string     `json:"message"`
}

// failureHead is the head of a reply that says so: a tool may answer with a payload like that as well.
var failureHead = []byte("failed")

// failureIn returns the failure that a reply says; nil for an answer.
func failureIn(m *agora.Message) *agora.Error {
	if m.Meta.Dialect != aip.Dialect || !bytes.Equal(m.Meta.Head, failureHead) {
		return nil
	}
	f := toolFailure{Error: new(failureText)}
	if err := json.Unmarshal(m.Body, &f); err != nil || f.Error == nil {
		return agora.Errorf(agora.StreamAborted, "the tool has failed")
	}
	return agora.Errorf(f.Error.Code, "%s", f.Error.Message)
}
