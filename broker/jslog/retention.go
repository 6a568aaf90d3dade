package jslog

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/record"
)

// NothingEvicted reports whether nothing is gone from a log that was stored after the record at floor, or from a time on.
func (c *Client) NothingEvicted(ctx context.Context, p *Location, floor uint64, at time.Time) (bool, error) {
	if floor > 0 {
		oldest, err := c.Next(ctx, p.Stream, p.Log(), 1)
		if err != nil && !errors.Is(err, ErrNone) {
			return false, err
		}
		if err == nil && (oldest.Seq <= floor || oldest.At.Before(at.Add(record.DoubtAfter-record.VoidAfter))) { // clocks may be that far apart
			return true, nil
		}
	}
	s, err := c.State(ctx, p.Stream, p.Log())
	return err == nil && s.Count < c.cfg.MaxRecords, err
}

// Forgets reports whether what was stored right after a time may be too old to be kept. Clocks may be apart.
func (c *Client) Forgets(at time.Time) bool {
	return at.IsZero() || c.cfg.Clock.Now().Sub(at) > c.cfg.MaxAge-min(record.VoidAfter-record.DoubtAfter, c.cfg.MaxAge/10)
}

// Drop drops what an address's log keeps before a sequence, and returns how many records that were.
func (c *Client) Drop(ctx context.Context, p Location, before uint64) (records int, err error) {
	var v struct {
		Error  *jetstream.APIError `json:"error"`
		Purged int                 `json:"purged"`
	}
	what := map[string]any{"filter": p.Log()}
	if before > 0 {
		what["seq"] = before
	}
	if err := c.api(ctx, "STREAM.PURGE."+p.Stream, what, &v); err != nil {
		return 0, Unavailable(err)
	}
	if v.Error != nil {
		return 0, Unavailable(v.Error)
	}
	return v.Purged, nil
}
