package iat

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/iat"
)

// mayAsk looks at a request before it is said: the cluster itself takes few. What else it may not be is the core's to
// say, as of every request.
func mayAsk(e *iat.Envelope) error {
	if agora.AgentID(e.To) == agora.Cluster && e.Action != iat.ActionApproval {
		return &iat.Fault{Err: agora.Errorf(agora.InvalidRequest, "the cluster itself takes %s and %s alone", iat.ActionRegister, iat.ActionApproval), Path: "/header/to", ID: e.ID}
	}
	return nil
}
