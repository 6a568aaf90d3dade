package presence

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

// keepChanges is how many changes of a roster wait to be announced; the oldest are dropped first, as every later
// one has the whole roster.
const keepChanges = 1024

// Change is a change of a roster; exactly one of Joined and Left is set.
type Change struct {
	Version      uint64 // grows, also when the space vanished in between
	Members      []agora.AgentID
	Joined, Left agora.AgentID
}

// Membership is a space's members after a join or a leave, in the order in which they joined.
type Membership struct {
	Members []agora.AgentID
	Changed bool     // the roster did
	Pending []Change // all that is to be announced yet, in order: by the one who comes first, see Announced
}

// Join makes the session a member: first in the agent's record, then in the
// space. create: make the space where it is missing (else ErrNoSpace). ErrFull,
// ErrDeposed. A member that joins again changes nothing, also with a newer session. Four round trips.
func (s Spaces) Join(ctx context.Context, c Claim, space, typ string, create bool) (Membership, error) {
	if err := s.sure(ctx); err != nil { // its roster would lack those who are not told of again yet
		return Membership{}, err
	}
	replies, err := s.runAll(ctx, []call{
		indexAdd(spacesKey(c.Tenant), 0, agora.EncodeToken(space)),
		memberOf(c, c.Epoch, space),
	})
	if err != nil {
		return Membership{}, err
	}
	if !replies[1].yes() {
		return Membership{}, ErrDeposed
	}
	r, err := s.run(ctx, s.join(c, space, typ, create, joinsNew))
	if err != nil {
		return Membership{}, err
	}
	switch r.at(0).str() {
	case "none":
		return Membership{}, s.unmember(ctx, c, space, false, ErrNoSpace)
	case "full":
		return Membership{}, s.unmember(ctx, c, space, false, ErrFull)
	case "deposed":
		return Membership{}, ErrDeposed
	}
	return r.membership(), s.stay(ctx, c, space)
}

// stay makes sure that the session was not over before its join came to the space: nobody would take it out again.
// Another edge may hold the session by now; it is a member nevertheless.
func (s Spaces) stay(ctx context.Context, c Claim, space string) error {
	r, err := s.run(ctx, memberOf(c, "", space))
	if err != nil || r.yes() {
		return err
	}
	if _, err := s.run(ctx, s.leave(c, space)); err != nil {
		return err
	}
	return ErrDeposed
}

// Leave takes the agent out, if it is this session's membership, or one of an earlier epoch. That the change is to be
// told stays noted in the agent's record (Record.Leaving) until Left: who ends the session, or continues with it,
// leaves once more. ErrNoSpace. Three round trips.
func (s Spaces) Leave(ctx context.Context, c Claim, space string) (Membership, error) {
	if err := s.sure(ctx); err != nil {
		return Membership{}, err
	}
	k := c.keys()
	if _, err := s.run(ctx, call{leavingScript, []string{k.rec, k.spaces}, []any{c.Session, agora.EncodeToken(space)}}); err != nil {
		return Membership{}, err
	}
	r, err := s.run(ctx, s.leave(c, space))
	if err != nil {
		return Membership{}, err
	}
	if r.at(0).str() != "ok" {
		return Membership{}, s.unmember(ctx, c, space, true, ErrNoSpace)
	}
	return r.membership(), nil
}

// Left says that a change which Leave made is told. A session that has joined again since stays a member. One round
// trip.
func (s Spaces) Left(ctx context.Context, c Claim, space string) error {
	return s.unmember(ctx, c, space, true, nil)
}

// Announced takes roster changes up to version off the space's list of those not yet published.
func (s Spaces) Announced(ctx context.Context, tenant, space string, version uint64) error {
	_, err := s.run(ctx, call{announcedScript, spaceKeys(tenant, space)[3:], []any{version}})
	return err
}

// memberOf writes a space into the session of an epoch; "" is any epoch of the session.
func memberOf(c Claim, epoch any, space string) call {
	k := c.keys()
	return call{memberScript, []string{k.rec, k.spaces}, []any{c.Session, epoch, agora.EncodeToken(space)}}
}

// unmember takes a space out of the agent's record, with leaving only if the session is leaving it, and returns why,
// unless that fails.
func (s Spaces) unmember(ctx context.Context, c Claim, space string, leaving bool, why error) error {
	k := c.keys()
	_, err := s.run(ctx, call{unmemberScript, []string{k.rec, k.spaces}, []any{c.Session, agora.EncodeToken(space), flag(leaving)}})
	if err != nil {
		return err
	}
	return why
}

// joining is how a membership comes about, in words of the script.
type joining string

const (
	joinsNew   joining = "new"
	joinsAgain joining = "again" // as its edge says; the server had its session, and not its membership, which may just have ended
	joinsLost  joining = "lost"  // as its edge says; the server had lost it, and others know it as a member
)

func (s Spaces) join(c Claim, space, typ string, create bool, how joining) call {
	return call{joinScript, spaceKeys(c.Tenant, space), []any{
		agora.EncodeToken(string(c.Agent)), c.Session, c.Epoch, typ, flag(create), s.cfg.MaxMembers, keepChanges, string(how),
	}}
}

func (s Spaces) leave(c Claim, space string) call {
	return call{leaveScript, spaceKeys(c.Tenant, space), []any{
		agora.EncodeToken(string(c.Agent)), c.Session, keepChanges, s.cfg.EmptyGrace.Milliseconds(), c.Epoch,
	}}
}

// seat is a member, by its token and place in the order of joining.
type seat struct {
	token string
	order uint64
}

// membership reads {'ok', changed, members and their order, pending changes}. A change is stored without its members:
// they follow from today's by undoing the later changes.
func (r reply) membership() Membership {
	var seats []seat
	for token, order := range r.at(2).pairs {
		n, _ := strconv.ParseUint(order, 10, 64)
		seats = append(seats, seat{token, n})
	}
	m := Membership{Members: idsOf(seats), Changed: r.at(1).yes()}
	pending := r.at(3).list()
	m.Pending = make([]Change, len(pending))
	for i, p := range slices.Backward(pending) {
		m.Pending[i], seats = undo(p.str(), seats)
	}
	return m
}

// undo reads a change, "<version> J|L <order> <agent>", made last to seats, and returns the seats before it.
func undo(line string, seats []seat) (Change, []seat) {
	f := strings.Fields(line + " . . . .")
	c := Change{Members: idsOf(seats)}
	c.Version, _ = strconv.ParseUint(f[0], 10, 64)
	order, _ := strconv.ParseUint(f[2], 10, 64)
	id := agentIDs(f[3:4])
	if len(id) == 0 {
		return c, seats
	}
	if f[1] == "J" {
		c.Joined = id[0]
		return c, slices.DeleteFunc(seats, func(s seat) bool { return s.token == f[3] })
	}
	c.Left = id[0]
	at, _ := slices.BinarySearchFunc(seats, order, func(s seat, n uint64) int { return int(s.order) - int(n) })
	return c, slices.Insert(seats, at, seat{f[3], order})
}

func idsOf(seats []seat) []agora.AgentID {
	tokens := make([]string, len(seats))
	for i, s := range seats {
		tokens[i] = s.token
	}
	return agentIDs(tokens)
}
