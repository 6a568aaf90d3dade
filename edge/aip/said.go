package aip

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// said tells whether a call's status was said by its callee, and is not what gRPC makes of a connection that is lost, or never came to be.
type said struct{ atomic.Bool }

type saidKey struct{}

// listening returns a context for a call, and what is told by it.
func listening(ctx context.Context) (context.Context, *said) {
	s := new(said)
	return context.WithValue(ctx, saidKey{}, s), s
}

// ear hears the statuses that callees say. It is the stats.Handler of channels.
type ear struct{}

// TagRPC implements stats.Handler.
func (ear) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler: trailers come from the callee alone.
func (ear) HandleRPC(ctx context.Context, e stats.RPCStats) {
	if _, is := e.(*stats.InTrailer); !is {
		return
	}
	if s, ok := ctx.Value(saidKey{}).(*said); ok {
		s.Store(true)
	}
}

// TagConn implements stats.Handler.
func (ear) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (ear) HandleConn(context.Context, stats.ConnStats) {}
