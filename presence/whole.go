package presence

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
)

// ErrIncomplete is the cause of UNAVAILABLE while the server may have lost what it knew: it was
// started empty, or another took its place. What it holds is true, but what it lacks means nothing, so nobody
// is told that an agent or a space is unknown, no new session begins under an id that may be held, no
// roster or list is given, and nothing is swept.
var ErrIncomplete = errors.New("presence has lost what it knew, and is being told again")

// Whole tells whether what the server lacks is not there: its mark says so, which is lost
// with everything else. On a Redis Cluster the mark is on one node, and tells of that one's loss.
func (s *Store) Whole(ctx context.Context) (bool, error) {
	n, err := s.rdb.Exists(ctx, wholeKey).Result()
	return n > 0, unavailable(err)
}

// SetWhole says that every edge has told the server what it holds, or had a whole lease's time to do so since
// the mark was found missing; or that no edge holds anything.
func (s *Store) SetWhole(ctx context.Context) error {
	return unavailable(s.rdb.Set(ctx, wholeKey, "1", 0).Err())
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
