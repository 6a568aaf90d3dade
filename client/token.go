package client

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire"
)

// TokenSource returns the credentials to present now. It is called at every
// connect and before those in use end, never twice at a time, and must return when ctx ends.
type TokenSource func(ctx context.Context) (string, error)

// renewPause is between two renewals at least, whatever the clock here says.
const renewPause = 5 * time.Second

// credentials returns the token to present.
func (c *Client) credentials(ctx context.Context) (string, error) {
	if c.cfg.TokenSource == nil {
		return c.cfg.Token, nil
	}
	token, err := c.cfg.TokenSource(ctx)
	if err != nil {
		return "", &agora.Error{Code: agora.Unavailable, Message: "there are no credentials now", Cause: err}
	}
	return token, nil
}

// refused is a token that an edge did not take.
type refused struct {
	token string
	since time.Time
}

// hopeful tells whether a connection that was refused for its token may get
// in with the next one: the source may have a better one, but for no longer than Patience.
func (c *Client) hopeful(err error) bool {
	if e, ok := errors.AsType[*agora.Error](err); !ok || e.Code != agora.Unauthorized || c.cfg.TokenSource == nil {
		return false
	}
	if c.presented != c.refused.token || c.refused.since.IsZero() {
		c.refused = refused{c.presented, time.Now()}
	}
	return time.Since(c.refused.since) < c.cfg.Patience
}

// renew has the connection go on with new credentials before the old ones
// end, until ctx does. Where it fails, the edge closes the connection in time.
func (c *Client) renew(ctx context.Context, l *link) {
	if c.cfg.TokenSource == nil || c.card.Load() == nil {
		return
	}
	for ends, least := l.expires, time.Duration(0); !ends.IsZero(); least = renewPause {
		if !pause.For(ctx, max(time.Until(ends)*3/4, least)) {
			return
		}
		next, err := c.refresh(ctx)
		switch {
		case err == nil:
			ends = next
		case ctx.Err() == nil:
			c.cfg.Log.Warn("credentials are not renewed", "agent", c.cfg.Agent, "ends", ends, "err", err)
		}
	}
}

// refresh presents new credentials, and returns when they end.
func (c *Client) refresh(ctx context.Context) (time.Time, error) {
	token, err := c.credentials(ctx)
	if err != nil {
		return time.Time{}, err
	}
	f, err := c.call(ctx, &wire.Frame{Type: "agent.refresh", Token: token})
	if err != nil {
		return time.Time{}, err
	}
	return ending(f), nil
}

// ending returns when a frame says that credentials end; zero for never.
func ending(f *wire.Frame) time.Time {
	if f.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(int64(f.Expires), 0)
}
