package presence

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// SpaceType tells what rules a space has.
type SpaceType = string

// The types. An empty Public space vanishes after Config.EmptyGrace, others stay.
const (
	Public SpaceType = "public"
	System SpaceType = "system"
)

// What can become of a join or a leave.
var (
	ErrFull    = errors.New("space is full")
	ErrNoSpace = errors.New("no such space")
)

// Space is an entry in the list of spaces.
type Space struct {
	Name, Type string
	Members    int
}

// Spaces is which spaces there are, and who is in each.
type Spaces struct{ *backend }

// Create makes a space where it is missing.
func (s Spaces) Create(ctx context.Context, tenant, space, typ string) error {
	_, err := s.runAll(ctx, []call{
		indexAdd(spacesKey(tenant), 0, agora.EncodeToken(space)),
		{createScript, spaceKeys(tenant, space), []any{typ, s.cfg.EmptyGrace.Milliseconds()}},
	})
	return err
}

// Exists reports whether there is such a space.
func (s Spaces) Exists(ctx context.Context, tenant, space string) (bool, error) {
	n, err := s.rdb.Exists(ctx, spaceKeys(tenant, space)[0]).Result()
	if err == nil && n == 0 {
		return false, s.sure(ctx)
	}
	return n > 0, unavailable(err)
}

// Members returns the members in the order in which they joined, or ErrNoSpace.
func (s Spaces) Members(ctx context.Context, tenant, space string) ([]agora.AgentID, error) {
	k := spaceKeys(tenant, space)
	p := s.rdb.Pipeline()
	exists, members, whole := p.Exists(ctx, k[0]), p.ZRange(ctx, k[2], 0, -1), p.Exists(ctx, wholeKey)
	if _, err := p.Exec(ctx); err != nil {
		return nil, unavailable(err)
	}
	if err := s.surely(ctx, whole.Val() > 0); err != nil {
		return nil, err
	}
	if exists.Val() == 0 {
		return nil, ErrNoSpace
	}
	return agentIDs(members.Val()), nil
}

// IsMember reports whether an agent is a member; of no space nobody is.
func (s Spaces) IsMember(ctx context.Context, tenant, space string, id agora.AgentID) (bool, error) {
	ok, err := s.rdb.HExists(ctx, spaceKeys(tenant, space)[1], agora.EncodeToken(string(id))).Result()
	if err == nil && !ok {
		return false, s.sure(ctx)
	}
	return ok, unavailable(err)
}

// List returns a tenant's spaces, sorted by name. A round trip or two for every few hundred.
func (s Spaces) List(ctx context.Context, tenant string) ([]Space, error) {
	if err := s.sure(ctx); err != nil {
		return nil, err
	}
	found := map[string]Space{}
	err := s.scan(ctx, spacesKey(tenant), func(es []entry) error {
		p := s.rdb.Pipeline()
		types, sizes := make([]*redis.StringCmd, len(es)), make([]*redis.IntCmd, len(es))
		for i, e := range es {
			name, _ := agora.DecodeToken(e.member)
			k := spaceKeys(tenant, name)
			types[i], sizes[i] = p.HGet(ctx, k[0], "type"), p.HLen(ctx, k[1])
		}
		if _, err := p.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
			return unavailable(err)
		}
		var stale []entry
		for i, e := range es {
			if types[i].Err() != nil {
				stale = append(stale, e)
				continue
			}
			name, _ := agora.DecodeToken(e.member)
			found[name] = Space{Name: name, Type: types[i].Val(), Members: int(sizes[i].Val())}
		}
		return s.drop(ctx, spacesKey(tenant), stale)
	})
	out := make([]Space, 0, len(found))
	for _, sp := range found {
		out = append(out, sp)
	}
	slices.SortFunc(out, func(a, b Space) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

// agentIDs decodes members of a space; what no Store wrote is left out.
func agentIDs(tokens []string) []agora.AgentID {
	ids := make([]agora.AgentID, 0, len(tokens))
	for _, t := range tokens {
		if id, err := agora.DecodeToken(t); err == nil {
			ids = append(ids, agora.AgentID(id))
		}
	}
	return ids
}
