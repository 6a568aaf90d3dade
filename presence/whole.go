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
// is told that an agent or a space is unknown, no new session begins under an id that may be held, no
// roster or list is given, and nothing is swept.
var ErrIncomplete = errors.New("presence has lost what it knew, and is being told again")

// Whole tells whether what the server lacks is not there: its mark says so, which is lost
// with everything else. On a Redis Cluster there are many, spread over its slots, so that the loss of any node
// that has more than a few hundred slots in a row shows.
func (s *Store) Whole(ctx context.Context) (bool, error) {
	p := s.rdb.Pipeline()
	marks := s.marks()
	found := make([]*redis.IntCmd, len(marks))
	for i, m := range marks {
		found[i] = p.Exists(ctx, m)
	}
	if _, err := p.Exec(ctx); err != nil {
		return false, unavailable(err)
	}
	for _, f := range found {
		if f.Val() == 0 {
			return false, nil
		}
	}
	return true, nil
}

// marks returns the keys that say that the server is whole.
func (s *Store) marks() []string {
	if s.sharded() {
		return spread()
	}
	return []string{wholeKey}
}

// sharded tells whether what the server has is on several nodes.
func (s *Store) sharded() bool {
	_, is := s.rdb.(*redis.ClusterClient)
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

// SetWhole says that every edge has told the server what it holds, or had a whole lease's time to do so since
// the mark was found missing; or that no edge holds anything.
func (s *Store) SetWhole(ctx context.Context) error {
	p := s.rdb.Pipeline()
	for _, m := range s.marks() {
		p.Set(ctx, m, "1", 0)
	}
	_, err := p.Exec(ctx)
	return unavailable(err)
}

// surely is sure where the mark of a single server was found there or not: it says nothing of other nodes.
func (s *Store) surely(ctx context.Context, found bool) error {
	if !found {
		return incomplete()
	}
	if s.sharded() {
		return s.sure(ctx)
	}
	return nil
}

// sure returns nil when the server is whole, else UNAVAILABLE for ErrIncomplete.
func (s *Store) sure(ctx context.Context) error {
	whole, err := s.Whole(ctx)
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
