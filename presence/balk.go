package presence

import (
	"context"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

// Balk is a delivery by which an agent has closed its connections, as it takes no frame so large.
type Balk struct {
	Space string // in whose log it stands; empty: in the mailbox
	Seq   uint64 // its position there
	Times int    // how many connections in a row, one after the other; 0 for none
}

// Balked notes that the agent has closed the connection of a claim because of a delivery. It counts once for a claim, and not at all where another holder has begun since.
func (s Sessions) Balked(ctx context.Context, c Claim, b Balk) error {
	_, err := s.run(ctx, call{balkedScript, []string{c.keys().rec}, []any{c.Epoch, strconv.FormatUint(b.Seq, 10) + "/" + agora.EncodeToken(b.Space)}})
	return err
}

// parseBalk reads what the script of [Sessions.Balked] writes; the zero Balk where that is nothing.
func parseBalk(s string) Balk {
	f := strings.Fields(s)
	if len(f) != 3 {
		return Balk{}
	}
	seq, token, _ := strings.Cut(f[2], "/")
	times, err1 := strconv.Atoi(f[0])
	n, err2 := strconv.ParseUint(seq, 10, 64)
	space, err3 := "", error(nil)
	if token != "" {
		space, err3 = agora.DecodeToken(token)
	}
	if err1 != nil || err2 != nil || err3 != nil {
		return Balk{}
	}
	return Balk{space, n, times}
}
