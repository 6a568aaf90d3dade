package broker

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// drop drops what an address's log keeps before a sequence, and returns how many records that were.
func (c *logClient) drop(ctx context.Context, p location, before uint64) (records int, err error) {
	var v struct {
		Error  *jetstream.APIError `json:"error"`
		Purged int                 `json:"purged"`
	}
	what := map[string]any{"filter": p.log()}
	if before > 0 {
		what["seq"] = before
	}
	if err := c.api(ctx, "STREAM.PURGE."+p.stream, what, &v); err != nil {
		return 0, logUnavailable(err)
	}
	if v.Error != nil {
		return 0, logUnavailable(v.Error)
	}
	return v.Purged, nil
}
