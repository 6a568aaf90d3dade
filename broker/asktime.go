package broker

import (
	"context"
	"encoding/json"
	"time"
)

// askTime has the server that the Broker is connected to tell its time, before there is a stream whose leader could be
// asked. It needs a right that not every account has: without it the machine's clock must do.
func (c *logClient) askTime(ctx context.Context) {
	ctx, cancel := c.within(ctx, timeAnswer)
	defer cancel()
	s := sample{sent: time.Now()}
	m, err := c.nc.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	var v struct {
		Server struct {
			Time time.Time `json:"time"`
		} `json:"server"`
	}
	if err != nil || json.Unmarshal(m.Data, &v) != nil {
		return
	}
	s.got = time.Now()
	half := s.got.Sub(s.sent) / 2
	c.cfg.Clock.known.Store(&reading{at: s.got, log: v.Server.Time.Add(half), slack: half})
}

// setClock asks the leader of a stream until the time is well known, or a few times.
func (c *logClient) setClock(ctx context.Context, stream string) {
	for range clockTries {
		if r := c.cfg.Clock.known.Load(); r != nil && r.slack < clockGood {
			return
		}
		if _, err := c.state(ctx, stream, ""); err != nil {
			return // the watchers ask again
		}
	}
}
