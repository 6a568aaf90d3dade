package cli

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/internal/pause"
)

// shortPause is how long to wait where an edge does not say.
const shortPause = time.Second

// dial connects. While edges answer that they can't take an agent now it tries again, for as long as ctx lasts.
func (v *verb) dial(ctx context.Context, cfg client.Config) (*client.Client, error) {
	return insist(ctx, v.tell, func() (*client.Client, error) {
		c, err := client.Dial(ctx, cfg)
		return c, v.awaited(err)
	})
}

// waitFlag defines the flag of a verb that continues, by which it waits for a cluster.
func (v *verb) waitFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&v.wait, "wait", false, "wait for a cluster that is not there yet (default: at a terminal)")
}

// awaited makes the error of a dialled address where nobody answers one that is tried again, if the verb waits for the
// cluster.
func (v *verb) awaited(err error) error {
	e, ok := errors.AsType[*agora.Error](err)
	if !ok || !v.wait || e.Code != agora.Unavailable || e.RetryAfter > 0 {
		return err
	}
	if _, dialled := errors.AsType[*net.OpError](e.Cause); !dialled {
		return err
	}
	later := *e
	later.RetryAfter = shortPause
	return &later
}

// insist calls f again while that returns UNAVAILABLE, or is asked to come back later, for as long as ctx lasts. It
// tells why it waits.
func insist[T any](ctx context.Context, tell func(string), f func() (T, error)) (T, error) {
	for told := ""; ; {
		value, err := f()
		wait, later := comeBack(err)
		if !later || ctx.Err() != nil {
			return value, err
		}
		if why := exit.Sentence(err); why != told {
			tell(why + "; trying again")
			told = why
		}
		if !pause.For(ctx, wait) {
			return value, err
		}
	}
}

// persist is insist for what returns nothing.
func persist(ctx context.Context, tell func(string), f func() error) error {
	_, err := insist(ctx, tell, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// comeBack returns how long to wait before trying again what failed; false where that makes no sense: where nobody
// has answered, nobody has said that it will get better.
func comeBack(err error) (wait time.Duration, later bool) {
	e, ok := errors.AsType[*agora.Error](err)
	if !ok || e.Code != agora.Unavailable && e.Code != agora.RateLimited {
		return 0, false
	}
	if e.RetryAfter > 0 {
		return e.RetryAfter, true
	}
	return shortPause, e.Code == agora.Unavailable && e.Cause == nil
}
