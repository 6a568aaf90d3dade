package edge

import (
	"context"
	"strings"

	"github.com/agora-relay/agora"
)

// Authenticator is the one verifier for every door.
type Authenticator interface {
	// Authenticate returns who presents a token, which may be empty, or an
	// UNAUTHORIZED error. It neither logs the token nor keeps it.
	Authenticate(ctx context.Context, token string) (Principal, error)
}

// Principal is who someone is and what it may do.
type Principal struct {
	Name   string   // two connections of one Name are the same party; stable
	Tenant string   // empty means the default one
	Any    bool     // may be any agent
	Agents []string // else: the ids it may be; '*' at the end of one stands for any rest
	System bool     // may publish into system spaces
}

// May tells whether the principal may be the agent.
func (p Principal) May(id agora.AgentID) bool {
	if p.Any {
		return true
	}
	for _, pattern := range p.Agents {
		prefix, wild := strings.CutSuffix(pattern, "*")
		if pattern == string(id) || wild && strings.HasPrefix(string(id), prefix) {
			return true
		}
	}
	return false
}
