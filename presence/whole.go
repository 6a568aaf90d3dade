package presence

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// ErrIncomplete is the cause of UNAVAILABLE while the server may have lost what it knew: it was
// started empty, or another took its place. What it holds is true, but what it lacks means nothing, so nobody
// learns that an agent or a space is unknown, no new session begins under an id that may be held, no
// roster or list is given, and nothing is swept.
var ErrIncomplete = errors.New("presence has lost what it knew, and is being told again")

// Whole reports whether what the server lacks is not there: its mark says so, which is lost
// with everything else. On a Redis Cluster there are many, spread over its slots, so that the loss of any node
// that has more than a few hundred slots in a row shows.
func (s *Store) Whole(ctx context.Context) (bool, error) { return s.whole(ctx) }

// Standing is Whole, and says since when the server is whole (to the millisecond, by Config.Now) while nobody has
// looked through the log for what sessions left there that the server has lost: zero once somebody has (Searched). One
// pipeline.
func (s *Store) Standing(ctx context.Context) (whole bool, unsearched time.Time, err error) {
	return s.standing(ctx)
}

// SetWhole says that every edge has told the server what it holds, or had a whole lease's time to do so since
// the mark was found missing; or that no edge holds anything. The log is to be looked through from now on.
func (s *Store) SetWhole(ctx context.Context) error {
	var calls []call
	for _, m := range s.marks() {
		calls = append(calls, call{madeWholeScript, []string{m, twin(m)}, []any{stored(s.cfg.Now())}})
	}
	_, err := s.runAll(ctx, calls)
	return err
}

// Gathering is one time that edges tell the server again what it has lost. Where it loses everything once more
// meanwhile, another one begins.
type Gathering struct {
	ID  string
	Age time.Duration
}

// Gather returns the gathering under way, which begins where there is none. It is for a server that is not whole.
func (s *Store) Gather(ctx context.Context) (Gathering, error) {
	r, err := s.run(ctx, call{gatherScript, []string{sinceKey}, nil})
	if err != nil {
		return Gathering{}, err
	}
	return Gathering{r.at(0).str(), time.Duration(r.at(1).int()) * time.Millisecond}, nil
}

// Gathered is SetWhole at the end of a gathering; nothing where another one has begun, or it has ended before.
func (s *Store) Gathered(ctx context.Context, g Gathering) error {
	var calls []call
	now := stored(s.cfg.Now())
	for _, m := range s.marks()[1:] {
		calls = append(calls, call{madeWholeScript, []string{m, twin(m)}, []any{now}})
	}
	if _, err := s.runAll(ctx, calls); err != nil {
		return err
	}
	_, err := s.run(ctx, call{gatheredScript, []string{wholeKey, twin(wholeKey), sinceKey}, []any{now, g.ID}})
	return err
}

// Doubt says that the server has lost something, as who holds it has found: it is not whole until SetWhole says so
// again. It returns whether the server was whole by its marks.
func (s *Store) Doubt(ctx context.Context) (was bool, err error) {
	p := s.rdb.Pipeline()
	n := p.Del(ctx, wholeKey)
	p.Del(ctx, sinceKey) // that an edge of an earlier version has left
	_, err = p.Exec(ctx)
	return n.Val() > 0, unavailable(err)
}

// Searched says that the log has been looked through for what sessions left there that the server had lost when it was
// made whole at a time, as Standing told it. Where it was made whole again since, there is more to look for, and
// nothing changes.
func (s *Store) Searched(ctx context.Context, since time.Time) error {
	_, err := s.run(ctx, call{searchedScript, []string{wholeKey, twin(wholeKey)}, []any{since.UnixMilli(), searched}})
	return err
}

// whole reports whether what the server lacks is not there.
func (b *backend) whole(ctx context.Context) (bool, error) {
	whole, _, err := b.standing(ctx)
	return whole, err
}

func (b *backend) standing(ctx context.Context) (whole bool, unsearched time.Time, err error) {
	p := b.rdb.Pipeline()
	mark := p.Get(ctx, wholeKey)
	var found []*redis.IntCmd
	for _, m := range b.marks()[1:] {
		found = append(found, p.Exists(ctx, m))
	}
	if _, err := p.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return false, time.Time{}, unavailable(err)
	}
	since, err := mark.Int64()
	if errors.Is(err, redis.Nil) {
		return false, time.Time{}, nil
	}
	for _, f := range found {
		if f.Val() == 0 {
			return false, time.Time{}, nil
		}
	}
	if since != searched {
		unsearched = time.UnixMilli(since)
	}
	return true, unsearched, unavailable(err)
}

// searched is what the first mark says when the log has been looked through since the server was made whole.
const searched = 1

// marks returns the keys that say that the server is whole. The first is the same on all servers, and says more: see
// Standing.
func (b *backend) marks() []string {
	if b.sharded() {
		return spread()
	}
	return []string{wholeKey}
}

// twin is the key that is written together with a mark: see made_whole.lua.
func twin(mark string) string { return mark + ":twin" }

// sharded reports whether what the server has is on several nodes.
func (b *backend) sharded() bool {
	_, is := b.rdb.(*redis.ClusterClient)
	return is
}

const (
	slots      = 16384 // of a Redis Cluster
	slotsAMark = 256
	polynomial = 0x1021 // of the checksum that tells a key's slot
)

// spread returns marks that lie one in every slotsAMark slots, and the one of a single server.
var spread = sync.OnceValue(func() []string {
	marks := []string{wholeKey}
	found := map[int]bool{}
	for n := 0; len(found) < slots/slotsAMark; n++ {
		tag := "w:" + strconv.Itoa(n)
		if at := slotOf(tag) / slotsAMark; !found[at] {
			found[at] = true
			marks = append(marks, root+"{"+tag+"}:whole")
		}
	}
	return marks
})

// slotOf returns the slot of a Redis Cluster that has the keys with a tag.
func slotOf(tag string) int {
	crc := uint16(0)
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			over := crc&0x8000 != 0
			if crc <<= 1; over {
				crc ^= polynomial
			}
		}
	}
	return int(crc) % slots
}

// surely is sure where the mark of a single server was found there or not: it says nothing of other nodes.
func (b *backend) surely(ctx context.Context, found bool) error {
	if !found {
		return incomplete()
	}
	if b.sharded() {
		return b.sure(ctx)
	}
	return nil
}

// sure returns nil when the server is whole, else UNAVAILABLE for ErrIncomplete.
func (b *backend) sure(ctx context.Context) error {
	whole, err := b.whole(ctx)
	if err == nil && !whole {
		err = incomplete()
	}
	return err
}

func incomplete() error {
	return &agora.Error{
		Code: agora.Unavailable, Message: "who is where is being gathered again", RetryAfter: time.Second, Cause: ErrIncomplete,
	}
}
