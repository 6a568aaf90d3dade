package jslog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// ErrFull means that the log takes nothing now.
var ErrFull = errors.New("the log is full")

// ErrDeposed means that a younger epoch holds the lane.
var ErrDeposed = errors.New("a younger epoch holds the lane")

// ErrMoved means that somebody else moved the fence meanwhile.
var ErrMoved = errors.New("the fence was moved")

// Fence is the last message on a lane's fence subject: zero when there is none.
type Fence struct {
	Seq   uint64
	Epoch uint64
}

// FenceAt reads a fence from the stream's leader.
func (c *Client) FenceAt(ctx context.Context, stream, subject string) (Fence, error) {
	m, err := c.Last(ctx, stream, subject)
	if errors.Is(err, ErrNone) {
		return Fence{}, nil
	}
	if err != nil {
		return Fence{}, err
	}
	epoch, err := record.ParseFence(m.Body)
	if err != nil {
		return Fence{}, fmt.Errorf("fence %s: %w", subject, err)
	}
	return Fence{Seq: m.Seq, Epoch: epoch}, nil
}

// MoveFence writes epoch to the fence and returns its sequence. From then on the server refuses the records of every
// earlier holder, also those that are on their way. It fails with ErrDeposed when a younger epoch is there.
func (c *Client) MoveFence(ctx context.Context, stream, subject string, epoch uint64) (uint64, error) {
	if !guard.Fences {
		return 0, nil
	}
	now, err := c.FenceAt(ctx, stream, subject)
	if err != nil {
		return 0, err
	}
	if guard.Epochs && now.Epoch > epoch {
		return 0, ErrDeposed
	}
	m := nats.NewMsg(subject)
	m.Header[ExpectedLast] = []string{strconv.FormatUint(now.Seq, 10)}
	m.Data = record.Fence(epoch)
	a, err := c.Publish(ctx, m, c.cfg.Retry)
	switch {
	case err != nil:
		return 0, err
	case a.Fenced():
		return 0, ErrMoved
	case a.Refused():
		return 0, ErrFull
	case a.Absent:
		return 0, nats.ErrNoResponders
	case a.Err != nil:
		return 0, a.Err
	}
	c.cfg.Fenced()
	return a.Seq, nil
}
