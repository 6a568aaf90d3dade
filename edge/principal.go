package edge

import (
	"context"
	"crypto/x509"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
)

// Authenticator is the one verifier for every door. It may be asked by many at a time.
type Authenticator interface {
	// Authenticate returns who presents the credentials, which may be empty:
	// UNAUTHORIZED when they are not good, UNAVAILABLE when nobody can tell
	// now. It neither logs nor keeps them.
	Authenticate(ctx context.Context, c Credentials) (Principal, error)
}

// Warden is an Authenticator that may take back what it has granted. The node
// asks it about every live session once its version has changed.
type Warden interface {
	Authenticator
	Version() uint64 // cheap; changes whenever something may have been taken back
	// Revalidate returns nil while what was granted to p holds: UNAUTHORIZED when it was taken
	// back, UNAVAILABLE when it is to be asked for again.
	Revalidate(p *Principal) error
}

// Credentials are what a connection presents, whatever its door.
type Credentials struct {
	Token string              // empty for none
	Peer  []*x509.Certificate // the client's certificate and those that vouch for it, verified by the door; empty for none
}

// Principal is who someone is and what it may do. Nothing of it is changed once it is made.
type Principal struct {
	Name    string        // two connections of one Name are the same party; stable
	Tenant  string        // empty means the default one
	Any     bool          // may be any agent
	Agents  []string      // else: the ids it may be; '*' at the end of one stands for any rest
	System  bool          // may publish into system spaces
	Roles   []string      // groups that it belongs to
	Scope   *policy.Scope // what its credentials take away from what the rules allow; nil for nothing
	ID      string        // of the credentials, by which they are revoked: a token's jti, a certificate's serial; empty for none
	Source  string        // which verifier vouches for it, and by which of its entries; of that verifier's making
	Issued  time.Time     // when the credentials were made; zero where they don't say
	Expires time.Time     // when they are over, and every session that they opened; zero for never

	Unverified bool // nobody has asked who it is: there is no authentication

	link bool // it is a link of the cluster's: see Node.Linked
}

// May reports whether the principal may be the agent.
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

// Sole returns the one agent that the principal may be; false where it may be several, or any.
func (p Principal) Sole() (agora.AgentID, bool) {
	if p.Any || len(p.Agents) != 1 || strings.HasSuffix(p.Agents[0], "*") {
		return "", false
	}
	return agora.AgentID(p.Agents[0]), true
}
