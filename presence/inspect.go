package presence

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// Sight is everything that is kept of an agent, for operators.
type Sight struct {
	Known     bool // it was seen; all else is zero where not
	Phase     Phase
	Holder    Holder // of its claim, while there is one
	Conn      string
	Session   string
	Principal string
	Epoch     uint64
	GraceEnds time.Time // while the session waits for its agent
	KnownTo   time.Time // when the agent is forgotten that has no session
	Clean     bool
	Unsettled []Past
	Record
}

// Phase is that of an agent's session.
type Phase string

// The phases.
const (
	Active  Phase = "active" // it has a connection, or had one a moment ago
	InGrace Phase = "grace"  // its connection was lost
	Ending  Phase = "ending" // it is being finished
	None    Phase = "none"   // there is no session
)

var phases = map[string]Phase{"1": Active, "2": InGrace, "3": Ending}

// Operators is what operators ask of agents, and the history that is kept for them.
type Operators struct {
	*backend
	sessions Sessions
}

// Inspect returns what is kept of an agent. It changes nothing, and takes two round trips. Where another
// edge changes it meanwhile, parts may be of before and parts of after.
func (s Operators) Inspect(ctx context.Context, tenant string, id agora.AgentID) (Sight, error) {
	m := member(tenant, id)
	k := keysOf(m, "")
	session, err := s.rdb.HGet(ctx, k.rec, "session").Result()
	if err != nil && err != redis.Nil {
		return Sight{}, unavailable(err)
	}
	k = keysOf(m, session)
	p := s.rdb.Pipeline()
	rec, unsettled := p.HGetAll(ctx, k.rec), p.HGetAll(ctx, k.unsettled)
	spaces, cancelled, lanes := p.HGetAll(ctx, k.spaces), p.HGetAll(ctx, k.cancelled), p.HGetAll(ctx, k.lanes)
	if _, err := p.Exec(ctx); err != nil {
		return Sight{}, unavailable(err)
	}
	f := rec.Val()
	if len(f) == 0 {
		return Sight{}, s.sure(ctx)
	}
	num := func(name string) reply { return reply{f[name]} }
	out := Sight{
		Known: true, Phase: None, Holder: Holder{decoded(f["edge"]), decoded(f["inc"])},
		Conn: f["conn"], Session: session, Principal: f["principal"], Epoch: num("epoch").uint(), Clean: f["clean"] == "1",
		GraceEnds: millis(num("grace_until").int()), KnownTo: millis(num("known_until").int()),
		Unsettled: flat(unsettled.Val()).pasts(),
		Record: Record{
			Position: Position{
				Cursor: num("cursor").uint(), Written: num("written").uint(), Tail: num("tail").uint(), TailAt: millis(num("tail_at").int()),
			},
			Dirty: num("dirty").uint(), Card: decodeCard(id, storedCard{f["card"], f["detail"]}, num("since").int()), Until: millis(num("reg_until").int()),
			Dial:   parseDial(f["dial"], f["dial_by"]),
			Spaces: flat(spaces.Val()).spaces(), Leaving: flat(spaces.Val()).leaving(), Cancelled: flat(cancelled.Val()).cancelled(), Lanes: flat(lanes.Val()).lanes(tenant),
		},
	}
	if phase, ok := phases[f["state"]]; ok {
		out.Phase = phase
	}
	return out, nil
}

// flat is a hash as scripts return one.
func flat(hash map[string]string) reply {
	all := make([]any, 0, 2*len(hash))
	for k, v := range hash {
		all = append(all, k, v)
	}
	return reply{all}
}

func decoded(token string) string {
	text, err := agora.DecodeToken(token)
	if err != nil {
		return ""
	}
	return text
}

// EndSession ends an agent's session under whatever claim it is: it is ending then, for the caller
// to finish (Ending). ErrDeposed when there is none.
func (s Operators) EndSession(ctx context.Context, tenant string, id agora.AgentID) error {
	c := Claim{Tenant: tenant, Agent: id}
	f, err := s.rdb.HMGet(ctx, c.keys().rec, "state", "session", "epoch").Result()
	if err != nil {
		return unavailable(err)
	}
	r := reply{f}
	if state := r.at(0).str(); state != "1" && state != "2" {
		return ErrDeposed
	}
	c.Session, c.Epoch = r.at(1).str(), r.at(2).uint()
	return s.sessions.End(ctx, c)
}

// Cursors returns how far each of some agents is with a space, as it was written last; 0 for
// who is no member. One pipeline.
func (s Operators) Cursors(ctx context.Context, tenant, space string, ids []agora.AgentID) ([]uint64, error) {
	p := s.rdb.Pipeline()
	cmds := make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		cmds[i] = p.HGet(ctx, keysOf(member(tenant, id), "").spaces, agora.EncodeToken(space))
	}
	if _, err := p.Exec(ctx); err != nil && err != redis.Nil {
		return nil, unavailable(err)
	}
	out := make([]uint64, len(ids))
	for i, c := range cmds {
		out[i], _ = c.Uint64() // none is 0
	}
	return out, nil
}
