package aip

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// statusOrigin says whether a call's status was sent by its callee, and is not what gRPC makes of a connection that is lost, or never came to be.
type statusOrigin struct{ atomic.Bool }

type statusOriginKey struct{}

// observed returns a context for a call, and what tells where its status came from once it is over.
func observed(ctx context.Context) (context.Context, *statusOrigin) {
	s := new(statusOrigin)
	return context.WithValue(ctx, statusOriginKey{}, s), s
}

// trailers observes the trailers that callees send. It is the stats.Handler of channels.
type trailers struct{}

// TagRPC implements stats.Handler.
func (trailers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler: trailers come from the callee alone.
func (trailers) HandleRPC(ctx context.Context, e stats.RPCStats) {
	if _, is := e.(*stats.InTrailer); !is {
		return
	}
	if s, ok := ctx.Value(statusOriginKey{}).(*statusOrigin); ok {
		s.Store(true)
	}
}

// TagConn implements stats.Handler.
func (trailers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (trailers) HandleConn(context.Context, stats.ConnStats) {}
