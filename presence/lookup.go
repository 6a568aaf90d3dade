package presence

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// State is that of an addressee.
type State uint8

// The states.
const (
	Unknown State = iota // never seen, or its last session ended longer than Config.Known ago
	Away                 // known; no socket that we know of
	Online
	BarePeer // registered as a peer of libp2p, and nothing else: it has no session in which it would read a mailbox
)

// Found is what is known of an agent.
type Found struct {
	State   State
	Returns bool   // where it is Away: its session is in its grace, and may go on
	Holder  Holder // where it is Online
	Cursor  uint64 // last position written, unless it is Unknown
}

// Addressees is whether what is sent to an agent finds it, and what that has sent itself.
type Addressees struct{ *backend }

// Lookup reports whether an agent is known; UNAVAILABLE for ErrIncomplete rather than Unknown while the server is
// not whole. When it is Away it notes that
// something is about to be sent to it.
func (s Addressees) Lookup(ctx context.Context, tenant string, id agora.AgentID) (Found, error) {
	r, err := s.run(ctx, lookup(tenant, id, 0))
	if err != nil {
		return Found{}, err
	}
	switch r.at(0).str() {
	case "online":
		return Found{State: Online, Holder: parseHolder(r.at(2).str() + " " + r.at(3).str()), Cursor: r.at(1).uint()}, nil
	case "bare":
		return Found{State: BarePeer}, nil
	case "away":
		return Found{State: Away, Returns: r.at(2).str() != "", Cursor: r.at(1).uint()}, nil
	}
	return Found{}, s.sure(ctx)
}

// Touch notes that something was sent to each address, where its agent is
// away. It is for senders that remember what Lookup said; one pipeline.
func (s Addressees) Touch(ctx context.Context, written map[agora.Address]time.Duration) error {
	calls := make([]call, 0, len(written))
	for a, age := range written {
		if !a.IsSpace() && !a.IsBox() {
			calls = append(calls, lookup(a.Tenant, a.Agent, age))
		}
	}
	_, err := s.runAll(ctx, calls)
	return err
}

// lookup finds an agent to which something is sent, or was so long ago.
func lookup(tenant string, id agora.AgentID, age time.Duration) call {
	return call{lookupScript, []string{recordOf(member(tenant, id))}, []any{max(0, age.Milliseconds())}}
}

// WroteTo reports whether an agent has written to an address in the session that
// it has now, its grace included. Two round trips.
func (s Addressees) WroteTo(ctx context.Context, tenant string, id agora.AgentID, to agora.Address) (bool, error) {
	return s.wrote(ctx, tenant, id, laneField(to))
}

// Streams reports whether a stream of an agent's to an address is open in the session that it has now, its grace
// included. Two round trips.
func (s Addressees) Streams(ctx context.Context, tenant string, id agora.AgentID, to agora.Address, stream string) (bool, error) {
	return s.wrote(ctx, tenant, id, streamField(laneField(to), stream))
}

// wrote reports whether the session that an agent has now has a field among its lanes.
func (s Addressees) wrote(ctx context.Context, tenant string, id agora.AgentID, field string) (bool, error) {
	m := member(tenant, id)
	session, err := s.rdb.HGet(ctx, recordOf(m), "session").Result()
	if errors.Is(err, redis.Nil) {
		return false, s.sure(ctx)
	}
	if err != nil {
		return false, unavailable(err)
	}
	wrote, err := s.rdb.HExists(ctx, keysOf(m, session).lanes, field).Result()
	if err == nil && !wrote {
		return false, s.sure(ctx)
	}
	return wrote, unavailable(err)
}
