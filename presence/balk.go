package presence

import (
	"context"
	"strconv"

	"github.com/agora-relay/agora"
)

// Balk is a delivery at which an agent has closed its connection, as it takes no frame so large.
type Balk struct {
	Space string // in whose log it stands; empty: in the mailbox
	Seq   uint64 // its position there
	Size  int    // bytes of its frame
}

// Balked notes that the agent has closed the connection of a claim at a delivery. Where it is the second one in a row,
// the agent is known from then on to take only what is smaller ([Record.Takes]), until its session ends. It counts once
// for a claim, and not at all where another holder has begun since.
func (s Sessions) Balked(ctx context.Context, c Claim, b Balk) error {
	place := strconv.FormatUint(b.Seq, 10) + "/" + agora.EncodeToken(b.Space)
	_, err := s.run(ctx, call{balkedScript, []string{c.keys().rec}, []any{c.Epoch, place, b.Size}})
	return err
}
