package member

import (
	"context"
	"errors"
	"sync/atomic"
)

// errNotHanded is the error of a call that the server has never seen, so that it may be made again.
var errNotHanded = errors.New("the tool server was not there")

// unseenKey is the key of what handing puts into a context.
type unseenKey struct{}

// handing returns a context for a call, and what is true once it is known that the server was not handed the call.
func handing(ctx context.Context) (context.Context, *atomic.Bool) {
	unseen := new(atomic.Bool)
	return context.WithValue(ctx, unseenKey{}, unseen), unseen
}

// notHanded says that the server was not handed the call that a context is of.
func notHanded(ctx context.Context) {
	if unseen, ok := ctx.Value(unseenKey{}).(*atomic.Bool); ok {
		unseen.Store(true)
	}
}
