package aip

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/carrier"
)

// byMail reaches nodes by their mailboxes, as agents of any dialect are: so a call that is made again is done once. What it adds is that the failure of a tool is
// told from its answer.
type byMail struct{ carrier.Carrier }

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
		if e := failureIn(m.Body); e != nil {
			return agora.Message{}, &carrier.Failure{Err: e}
		}
	}
	return m, err
}

// failureIn returns the failure that a payload says, as failure has made it; nil for an answer.
func failureIn(payload []byte) *agora.Error {
	if !bytes.HasPrefix(payload, []byte(`{"error":{"code":`)) {
		return nil
	}
	var f toolFailure
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if d.Decode(&f) != nil || f.Error == nil || f.Error.Code == "" {
		return nil
	}
	return agora.Errorf(f.Error.Code, "%s", f.Error.Message)
}
