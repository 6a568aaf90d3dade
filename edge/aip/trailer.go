package aip

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// statusOrigin says whether a call's status was sent by its callee, and is not what gRPC makes of a connection that is
// lost, or never came to be.
type statusOrigin struct{ atomic.Bool }

type statusOriginKey struct{}

// observed returns a context for a call, and what tells where its status came from once it is over.
func observed(ctx context.Context) (context.Context, *statusOrigin) {
	s := new(statusOrigin)
	return context.WithValue(ctx, statusOriginKey{}, s), s
}

// observer observes the trailers that callees send, and the ends of connections. It is the stats.Handler of the gRPC
// channel.
type observer struct{}

// TagRPC implements stats.Handler.
func (observer) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler: trailers come from the callee alone.
func (observer) HandleRPC(ctx context.Context, e stats.RPCStats) {
	if _, is := e.(*stats.InTrailer); !is {
		return
	}
	if s, ok := ctx.Value(statusOriginKey{}).(*statusOrigin); ok {
		s.Store(true)
	}
}

// TagConn implements stats.Handler.
func (observer) TagConn(ctx context.Context, i *stats.ConnTagInfo) context.Context {
	if at, is := i.RemoteAddr.(*nodeAddr); is && at.channel != nil {
		return context.WithValue(ctx, channelKey{}, at.channel)
	}
	return ctx
}

// HandleConn implements stats.Handler.
func (observer) HandleConn(ctx context.Context, e stats.ConnStats) {
	if _, is := e.(*stats.ConnEnd); !is {
		return
	}
	if ch, ok := ctx.Value(channelKey{}).(*channel); ok {
		ch.all.lost(ch)
	}
}
