package approval

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/agora-relay/agora"
)

// Answer decides by a reply of the agent that was asked: m is one to the approval's box, From that agent, its body an
// object with the boolean approved, and maybe the text note. Errors are those of Decide, and FORBIDDEN where it is not
// from whom was asked, INVALID_REQUEST where its body is no decision.
func (a *Approvals) Answer(ctx context.Context, m *agora.Message) (Approval, error) {
	n, err := a.entryOf(ctx, m.To.Tenant, m.To.Space)
	if err != nil {
		return Approval{}, err
	}
	if n == nil {
		return Approval{}, agora.Errorf(agora.NotFound, "the approval that this answers does not exist")
	}
	switch asked := a.replica.current(n); m.From {
	case asked.Agent:
		return Approval{}, agora.Errorf(agora.Forbidden, "nobody can approve what it has asked for itself")
	case asked.To:
	default:
		return Approval{}, agora.Errorf(agora.Forbidden, "agent %q was not asked for this approval", clip(string(m.From)))
	}
	v, err := ParseVerdict(m.Body)
	if err != nil {
		return Approval{}, err
	}
	v.By, v.Answer = string(m.From), m.Body
	return a.decide(ctx, n, &v)
}

// ParseVerdict reads a decision: a JSON object with the boolean approved, and maybe the text note. Others of its keys
// mean nothing. INVALID_REQUEST where it is none.
func ParseVerdict(body []byte) (v Verdict, err error) {
	bad := agora.Errorf(agora.InvalidRequest, `a decision is an object with "approved": true or false`)
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') || !json.Valid(body) {
		return v, bad
	}
	var said, noted bool
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return v, bad
		}
		switch key {
		case "approved":
			text := string(value)
			if said || text != "true" && text != "false" {
				return v, bad
			}
			said, v.Approved = true, text == "true"
		case "note":
			if noted || value[0] != '"' || json.Unmarshal(value, &v.Note) != nil {
				return v, agora.Errorf(agora.InvalidRequest, "the note of a decision is a text")
			}
			noted = true
		}
	}
	if !said {
		return v, bad
	}
	return v, nil
}
