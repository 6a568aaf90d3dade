package presence

import (
	"cmp"
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// Agents returns the cards of all agents of a tenant that have a session, its
// grace included, sorted by id. A round trip or two for every few hundred.
func (s *Store) Agents(ctx context.Context, tenant string) ([]agora.Agent, error) {
	if err := s.sure(ctx); err != nil {
		return nil, err
	}
	found := map[agora.AgentID]agora.Agent{}
	err := s.scan(ctx, agentsKey(tenant), func(es []entry) error {
		records, err := s.fields(ctx, es, "state", "card", "since")
		if err != nil {
			return err
		}
		var stale, leaving []entry
		for i, r := range records {
			_, id, ok := splitMember(es[i].member)
			state := r.at(0).str()
			if ok && (state == "1" || state == "2") {
				found[id] = decodeCard(id, r.at(1).str(), r.at(2).int())
			}
			switch state {
			case "1":
			case "2", "3":
				leaving = append(leaving, es[i])
			default:
				stale = append(stale, es[i])
			}
		}
		if err := s.expect(ctx, leaving); err != nil {
			return err
		}
		return s.drop(ctx, agentsKey(tenant), stale)
	})
	out := make([]agora.Agent, 0, len(found))
	for _, a := range found {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b agora.Agent) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
}

// scan goes through an index; a member may be given more than once.
func (s *Store) scan(ctx context.Context, key string, f func([]entry) error) error {
	var cursor uint64
	for {
		flat, next, err := s.rdb.ZScan(ctx, key, cursor, "", batch).Result()
		if err != nil {
			return unavailable(err)
		}
		es := make([]entry, 0, len(flat)/2)
		for i := 0; i+1 < len(flat); i += 2 {
			es = append(es, entry{flat[i], flat[i+1]})
		}
		for chunk := range slices.Chunk(es, batch) {
			if err := f(chunk); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// drop takes stale entries off an index, but for those that a claim on its way may have listed.
func (s *Store) drop(ctx context.Context, key string, stale []entry) error {
	if len(stale) == 0 {
		return nil
	}
	_, err := s.run(ctx, indexDel(key, s.settled, stale...))
	return err
}

// expect lists agents as due where they are not, as they should be: a failover may have lost it.
func (s *Store) expect(ctx context.Context, leaving []entry) error {
	if len(leaving) == 0 {
		return nil
	}
	zs := make([]redis.Z, len(leaving))
	for i, e := range leaving {
		zs[i] = redis.Z{Member: e.member}
	}
	return unavailable(s.rdb.ZAddNX(ctx, dueKey, zs...).Err())
}

// fields reads fields of the records of agents, in one pipeline.
func (s *Store) fields(ctx context.Context, es []entry, fields ...string) ([]reply, error) {
	p := s.rdb.Pipeline()
	cmds := make([]*redis.SliceCmd, len(es))
	for i, e := range es {
		cmds[i] = p.HMGet(ctx, recordOf(e.member), fields...)
	}
	if _, err := p.Exec(ctx); err != nil && len(es) > 0 {
		return nil, unavailable(err)
	}
	out := make([]reply, len(es))
	for i, c := range cmds {
		out[i] = reply{c.Val()}
	}
	return out, nil
}
