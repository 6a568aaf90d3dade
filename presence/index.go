package presence

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// indexAdd lists members in an index at a time from now on.
func indexAdd(key string, in time.Duration, members ...string) call {
	args := make([]any, 0, 1+len(members))
	args = append(args, in.Milliseconds())
	for _, m := range members {
		args = append(args, m)
	}
	return call{indexAddScript, []string{key}, args}
}

// entry is a member of an index and the score it was seen with, as the server spells it.
type entry struct{ member, score string }

// anyAge is for indexDel where the score alone shows that nobody listed the member again.
const anyAge = -10 * 365 * 24 * time.Hour

// indexDel drops entries that are at least of an age and have not been listed
// again since they were seen; an empty score drops the member whatever it has.
func indexDel(key string, age time.Duration, es ...entry) call {
	args := make([]any, 0, 1+2*len(es))
	args = append(args, age.Milliseconds())
	for _, e := range es {
		args = append(args, e.member, e.score)
	}
	return call{indexDelScript, []string{key}, args}
}

// indexDue asks for at most n entries of an age, oldest first.
func indexDue(key string, age time.Duration, n int) call {
	return call{indexDueScript, []string{key}, []any{age.Milliseconds(), n, ""}}
}

// indexTake is indexDue that makes what it returns due again only after a while.
func indexTake(key string, age time.Duration, n int, again time.Duration) call {
	return call{indexDueScript, []string{key}, []any{age.Milliseconds(), n, again.Milliseconds()}}
}

// due reads what indexDue and indexTake answer: the server's time in ms, and the entries.
func (r reply) due() (now int64, es []entry) {
	for m, score := range r.at(1).pairs {
		es = append(es, entry{m, score})
	}
	return r.at(0).int(), es
}

// list lists members in a tenant's directory, and has its revision grow. It goes before what is changed of them, so
// that who dies in between leaves nothing that no comparison would find: see Changed.
func list(tenant string, members ...string) call {
	args := make([]any, len(members))
	for i, m := range members {
		args[i] = m
	}
	return call{listScript, []string{agentsKey(tenant), revisionKey(tenant)}, args}
}

// scan goes through an index; a member may be given more than once.
func (b *backend) scan(ctx context.Context, key string, f func([]entry) error) error {
	var cursor uint64
	for {
		flat, next, err := b.rdb.ZScan(ctx, key, cursor, "", batch).Result()
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
func (b *backend) drop(ctx context.Context, key string, stale []entry) error {
	if len(stale) == 0 {
		return nil
	}
	_, err := b.run(ctx, indexDel(key, b.settled, stale...))
	return err
}

// expect lists agents as due where they are not, as they should be: a failover may have lost it.
func (b *backend) expect(ctx context.Context, leaving []entry) error {
	if len(leaving) == 0 {
		return nil
	}
	zs := make([]redis.Z, len(leaving))
	for i, e := range leaving {
		zs[i] = redis.Z{Member: e.member}
	}
	return unavailable(b.rdb.ZAddNX(ctx, dueKey, zs...).Err())
}
