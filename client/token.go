package client

import (
	"context"
	"errors"
	"log/slog"
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

// credentials are what is presented to edges.
type credentials struct {
	token    string
	source   TokenSource // gives the token instead; nil: it is always the same
	patience time.Duration
	log      *slog.Logger

	// One goroutine at a time connects, and owns these.
	presented string  // the token of the last attempt to connect
	refused   refused // the last one that no edge took
}

// get returns the token to present.
func (c *credentials) get(ctx context.Context) (string, error) {
	if c.source == nil {
		return c.token, nil
	}
	token, err := c.source(ctx)
	if err != nil {
		return "", &agora.Error{Code: agora.Unavailable, Message: "there are no credentials now", Cause: err}
	}
	return token, nil
}

// present is get for an attempt to connect.
func (c *credentials) present(ctx context.Context) (string, error) {
	var err error
	c.presented, err = c.get(ctx)
	return c.presented, err
}

// refused is a token that an edge did not take.
type refused struct {
	token string
	since time.Time
}

// hopeful reports whether a connection that was refused for its token may get
// in with the next one: the source may have a better one, but for no longer than its patience.
func (c *credentials) hopeful(err error) bool {
	if e, ok := errors.AsType[*agora.Error](err); !ok || e.Code != agora.Unauthorized || c.source == nil {
		return false
	}
	if c.presented != c.refused.token || c.refused.since.IsZero() {
		c.refused = refused{c.presented, time.Now()}
	}
	return time.Since(c.refused.since) < c.patience
}

// caller asks the edge and returns its answer.
type caller func(context.Context, *wire.Frame) (*wire.Frame, error)

// renew has the connection go on with new credentials before the old ones
// end, until ctx does. Where it fails, the edge closes the connection in time.
func (c *credentials) renew(ctx context.Context, ends time.Time, call caller) {
	if c.source == nil {
		return
	}
	for least := time.Duration(0); !ends.IsZero(); least = renewPause {
		if !pause.For(ctx, max(time.Until(ends)/4*3, least)) {
			return
		}
		next, err := c.refresh(ctx, call)
		switch {
		case err == nil:
			ends = next
		case ctx.Err() == nil:
			c.log.Warn("credentials are not renewed", "ends", ends, "err", err)
		}
	}
}

// refresh presents new credentials, and returns when they end.
func (c *credentials) refresh(ctx context.Context, call caller) (time.Time, error) {
	token, err := c.get(ctx)
	if err != nil {
		return time.Time{}, err
	}
	f, err := call(ctx, &wire.Frame{Type: "agent.refresh", Token: token})
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
	return time.Unix(int64(min(f.Expires, 1<<40)), 0)
}
