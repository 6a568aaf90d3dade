package presence

import (
	"context"
	"time"

	"github.com/agora-relay/agora"
)

// Position is what is known of where a reader stands.
type Position struct {
	Cursor  uint64    // last frame known to have arrived
	Written uint64    // last frame ever written to a socket of the session or an earlier one
	Tail    uint64    // position that the listener had at TailAt
	TailAt  time.Time // when the listener was last known to have had everything; zero where unknown
}

// Moved is how far a session has come.
type Moved struct {
	Claim    Claim
	Position Position
	Mark     time.Time         // see Record; zero leaves it as it is
	Spaces   map[string]uint64 // cursors in spaces, where they moved
}

// Positions is how far sessions have come.
type Positions struct{ *backend }

// Write writes positions behind, in one pipeline for all; those deposed
// are ignored. They are not clean: what is written later than them was not seen.
func (s Positions) Write(ctx context.Context, ps []Moved) error {
	calls := make([]call, len(ps))
	for i, p := range ps {
		k := p.Claim.keys()
		args := append([]any{p.Claim.Epoch}, s.args(p.Position, p.Mark, p.Spaces)...)
		calls[i] = call{positionsScript, []string{k.rec, k.spaces}, args}
	}
	_, err := s.runAll(ctx, calls)
	return err
}

// args are what put_positions of the prelude reads. The tail's age lets the
// server keep it by its own clock too, next to the times at which something was sent.
func (s Positions) args(p Position, mark time.Time, spaces map[string]uint64) []any {
	var age time.Duration
	if !p.TailAt.IsZero() {
		age = max(0, s.cfg.Now().Sub(p.TailAt))
	}
	args := []any{p.Cursor, p.Written, p.Tail, stored(p.TailAt), age.Milliseconds(), stored(mark)}
	for name, seq := range spaces {
		args = append(args, agora.EncodeToken(name), seq)
	}
	return args
}
