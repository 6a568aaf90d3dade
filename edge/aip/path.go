package aip

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora/wire/aip"
)

// passes returns FAILED_PRECONDITION for a call that has been here before, or has come too far. Nothing of it has been
// done then.
func (s *shared) passes(ctx context.Context) error {
	path := aip.PathOf(ctx)
	if slices.Contains(path, s.cfg.GatewayID) {
		return status.Errorf(codes.FailedPrecondition, "the call has come through gateway %q before", s.cfg.GatewayID)
	}
	if len(path) > aip.MaxHops {
		return errTooFar
	}
	return nil
}

var errTooFar = status.Errorf(codes.FailedPrecondition, "the call has come through more than %d gateways", aip.MaxHops)

// over returns a context for a call by a link: it carries its path, which is that of the call which it continues with,
// and this gateway.
func (s *shared) over(ctx context.Context, came []string) context.Context {
	return aip.WithPath(ctx, append(slices.Clip(came), s.cfg.GatewayID))
}

// toward returns a context for a call of a target, from one for a call of a node. It fails where a link would lead
// back, or too far.
func (s *shared) toward(ctx context.Context, t *target) (context.Context, error) {
	if t.link == nil {
		return ctx, nil
	}
	came := aip.PathOf(ctx)
	if len(came) >= aip.MaxHops {
		return nil, errTooFar
	}
	if t.link.leadsTo(came) {
		return nil, aip.NoReceiver()
	}
	return s.over(ctx, came), nil
}
