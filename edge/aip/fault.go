package aip

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/aip"
)

// statusOf returns an error as the status that a caller gets: one of a node's as it is, details included.
func statusOf(err error) *status.Status {
	if e, ok := errors.AsType[*agora.Error](err); ok {
		return aip.Status(e)
	}
	if s, ok := status.FromError(err); ok {
		return s
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err)
	}
	return aip.Status(err)
}

// failed returns the error of a call as its status, and counts it. What ended the call from here, as its credentials
// did, goes before what followed from that.
func (i *interceptor) failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if why := cause(ctx); why != nil {
		err = why
	}
	s := statusOf(err)
	i.stats.fault(s.Code())
	return s.Err()
}

// refused returns the error of a call that was not let in, and notes it.
func (i *interceptor) refused(method string, err error) error {
	e := agora.AsError(err)
	i.refusals.Note(e, func() []slog.Attr {
		return []slog.Attr{slog.String("method", method)}
	})
	s := statusOf(e)
	i.stats.fault(s.Code())
	return s.Err()
}
