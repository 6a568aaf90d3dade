package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/nats-io/nats.go"
)

// errFull means that the log takes nothing now.
var errFull = errors.New("the log is full")

// errMoved means that somebody else moved the fence meanwhile.
var errMoved = errors.New("the fence was moved")

// fence is the last message on a lane's fence subject: zero when there is none.
type fence struct {
	seq   uint64
	epoch uint64
}

// fenceAt reads a fence from the stream's leader.
func (c *logClient) fenceAt(ctx context.Context, stream, subject string) (fence, error) {
	m, err := c.lastOf(ctx, stream, subject)
	if errors.Is(err, errNone) {
		return fence{}, nil
	}
	if err != nil {
		return fence{}, err
	}
	epoch, err := record.ParseFence(m.body)
	if err != nil {
		return fence{}, fmt.Errorf("fence %s: %w", subject, err)
	}
	return fence{seq: m.seq, epoch: epoch}, nil
}

// moveFence writes epoch to the fence and returns its sequence. From then on the server refuses the
// records of every earlier holder, also those that are on their way. It fails with ErrDeposed when a younger epoch is there.
func (c *logClient) moveFence(ctx context.Context, stream, subject string, epoch uint64) (uint64, error) {
	if !guard.Fences {
		return 0, nil
	}
	now, err := c.fenceAt(ctx, stream, subject)
	if err != nil {
		return 0, err
	}
	if guard.Epochs && now.epoch > epoch {
		return 0, ErrDeposed
	}
	m := nats.NewMsg(subject)
	m.Header[expectedLast] = []string{strconv.FormatUint(now.seq, 10)}
	m.Data = record.Fence(epoch)
	a, err := c.publishWait(ctx, m, c.cfg.Retry)
	switch {
	case err != nil:
		return 0, err
	case a.fenced():
		return 0, errMoved
	case a.refused():
		return 0, errFull
	case a.absent:
		return 0, nats.ErrNoResponders
	case a.err != nil:
		return 0, a.err
	}
	return a.seq, nil
}

// nothingEvicted reports whether nothing is gone from a log that was stored after the record at floor, or from a time on.
func (c *logClient) nothingEvicted(ctx context.Context, p *location, floor uint64, at time.Time) (bool, error) {
	if floor > 0 {
		oldest, err := c.nextOf(ctx, p.stream, p.log(), 1)
		if err != nil && !errors.Is(err, errNone) {
			return false, err
		}
		if err == nil && (oldest.seq <= floor || oldest.at.Before(at.Add(record.DoubtAfter-record.VoidAfter))) { // clocks may be that far apart
			return true, nil
		}
	}
	s, err := c.state(ctx, p.stream, p.log())
	return err == nil && s.count < c.cfg.MaxRecords, err
}
