package presence

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// Record is what the new holder needs to begin.
type Record struct {
	Position  Position
	Clean     bool              // the positions were written as the socket went
	Mark      time.Time         // all space events stored before it are known to have arrived (dirty ends only)
	Quiet     bool              // nothing was sent to the agent since Position.TailAt
	Dirty     uint64            // the highest epoch that may have ended without handing over
	Cancelled []Stream          // streams that this agent cancelled: Seq is the position at which it did
	Lanes     []Lane            // lanes the session has used, with their open streams
	Spaces    map[string]uint64 // spaces of the session and the cursor in each, 0 where none was written
	Leaving   []string          // spaces that the session was leaving, or has left and nobody may have been told: to be left again
	Card      agora.Agent
	Dial      *Dialled  // how the session's connection is dialled; nil where its agent has made it
	Takes     int       // bytes of a frame that the agent is known to take at most, by [Sessions.Balked]; 0 where nothing is known
	Until     time.Time // when the agent's registration without a connection is over, by the server's clock; zero where it has none
}

// Stream names a peer's stream, and a position.
type Stream struct {
	Peer   agora.AgentID
	Stream string
	Seq    uint64
}

// Lane is an addressee of a session.
type Lane struct {
	To   agora.Address // of the session's own tenant
	Open []OpenStream
}

// OpenStream is a stream that has a start and no end yet.
type OpenStream struct {
	Stream   string
	Kind     agora.Kind
	Indexed  bool
	Deadline time.Time
	Receipts agora.Receipts // that its sender asked for at the start, for all of its parts
}

// Begin returns the record, once nothing is unsettled (else ErrUnsettled), and
// makes c the one whose positions count; they are no longer clean then.
// ErrDeposed when the claim is no longer c's. Repeated, it answers the same.
func (s Sessions) Begin(ctx context.Context, c Claim) (Record, error) {
	r, err := s.run(ctx, call{beginScript, c.keys().all(), []any{c.Epoch}})
	if err != nil {
		return Record{}, err
	}
	switch r.at(0).str() {
	case "ok":
		return r.at(2).record(c, r.at(1).yes()), nil
	case "unsettled":
		return Record{}, ErrUnsettled
	}
	return Record{}, ErrDeposed
}

// Ending returns what must be finished of a session that is ending (for
// ErrEnding too): the claim with the ending epoch and its unsettled, and the
// record. ErrDeposed when the agent is not ending (any more). Two round trips.
func (s Sessions) Ending(ctx context.Context, tenant string, id agora.AgentID) (Claim, Record, error) {
	c := Claim{Agent: id, Tenant: tenant}
	session, err := s.rdb.HGet(ctx, c.keys().rec, "session").Result()
	if errors.Is(err, redis.Nil) {
		return Claim{}, Record{}, ErrDeposed
	}
	if err != nil {
		return Claim{}, Record{}, unavailable(err)
	}
	c.Session = session
	r, err := s.run(ctx, call{endingScript, c.keys().all(), []any{session}})
	if err != nil {
		return Claim{}, Record{}, err
	}
	if r.at(0).str() != "ok" {
		return Claim{}, Record{}, ErrDeposed
	}
	c.Epoch, c.Unsettled = r.at(1).uint(), r.at(4).pasts()
	rec := r.at(3).record(c, r.at(2).yes())
	c.Dialled = rec.Dial != nil
	return c, rec, nil
}

// record reads what the prelude's record function returns.
func (r reply) record(c Claim, clean bool) Record {
	f := r.at(0)
	tailSeen, mailed := f.at(4).int(), f.at(5).int()
	return Record{
		Position: Position{
			Cursor: f.at(0).uint(), Written: f.at(1).uint(),
			Tail: f.at(2).uint(), TailAt: millis(f.at(3).int()),
		},
		Clean: clean,
		Mark:  millis(f.at(6).int()),
		// Both by the server's clock. Where no tail was ever written, nothing is known.
		Quiet:     tailSeen != 0 && mailed < tailSeen,
		Dirty:     f.at(7).uint(),
		Card:      decodeCard(c.Agent, storedCard{f.at(8).str(), f.at(10).str()}, f.at(9).int()),
		Dial:      parseDial(f.at(12).str(), f.at(13).str()),
		Until:     millis(f.at(11).int()),
		Takes:     int(f.at(14).uint()),
		Spaces:    r.at(1).spaces(),
		Leaving:   r.at(1).leaving(),
		Cancelled: r.at(2).cancelled(),
		Lanes:     r.at(3).lanes(c.Tenant),
	}
}

func (r reply) spaces() map[string]uint64 {
	out := map[string]uint64{}
	for token, seq := range r.pairs {
		if name, err := agora.DecodeToken(token); err == nil && seq != isLeaving {
			out[name], _ = strconv.ParseUint(seq, 10, 64)
		}
	}
	return out
}

// isLeaving stands in place of a cursor in a space that the session is leaving.
const isLeaving = "-"

func (r reply) leaving() (names []string) {
	for token, seq := range r.pairs {
		if name, err := agora.DecodeToken(token); err == nil && seq == isLeaving {
			names = append(names, name)
		}
	}
	return names
}

// names reads a list of spaces.
func (r reply) names() (names []string) {
	for _, token := range r.list() {
		if name, err := agora.DecodeToken(token.str()); err == nil {
			names = append(names, name)
		}
	}
	return names
}

func (r reply) cancelled() []Stream {
	var out []Stream
	for field, value := range r.pairs {
		p, st, _ := strings.Cut(field, "/")
		peer, err1 := agora.DecodeToken(p)
		stream, err2 := agora.DecodeToken(st)
		if err1 != nil || err2 != nil {
			continue
		}
		seq, _, _ := strings.Cut(value, " ")
		n, _ := strconv.ParseUint(seq, 10, 64)
		out = append(out, Stream{Peer: agora.AgentID(peer), Stream: stream, Seq: n})
	}
	return out
}
