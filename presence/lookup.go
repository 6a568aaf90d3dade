package presence

import (
	"context"

	"github.com/agora-relay/agora"
)

// State is that of an addressee.
type State uint8

// The states.
const (
	Unknown State = iota // never seen, or its last session ended longer than Config.Known ago
	Away                 // known; no socket that we know of
	Online
)

// Found is what is known of an agent.
type Found struct {
	State  State
	Holder Holder // where it is Online
	Cursor uint64 // last position written, unless it is Unknown
}

// Lookup tells whether an agent is known. When it is Away it notes that
// something is about to be sent to it.
func (s *Store) Lookup(ctx context.Context, tenant string, id agora.AgentID) (Found, error) {
	r, err := s.run(ctx, lookup(tenant, id))
	if err != nil {
		return Found{}, err
	}
	switch r.at(0).str() {
	case "online":
		return Found{Online, parseHolder(r.at(2).str() + " " + r.at(3).str()), r.at(1).uint()}, nil
	case "away":
		return Found{State: Away, Cursor: r.at(1).uint()}, nil
	}
	return Found{}, nil
}

// Touch notes that something was sent to each address, where its agent is
// away. It is for senders that remember what Lookup said; one pipeline.
func (s *Store) Touch(ctx context.Context, to []agora.Address) error {
	calls := make([]call, 0, len(to))
	for _, a := range to {
		if !a.IsSpace() {
			calls = append(calls, lookup(a.Tenant, a.Agent))
		}
	}
	_, err := s.runAll(ctx, calls)
	return err
}

func lookup(tenant string, id agora.AgentID) call {
	return call{lookupScript, []string{keysOf(member(tenant, id), "").rec}, nil}
}
