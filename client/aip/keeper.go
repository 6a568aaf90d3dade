package aip

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora/internal/pause"
	wire "github.com/agora-relay/agora/wire/aip"
)

// keep gives signs of life until ctx ends: at each interval, and at once when the channel to the gateway breaks.
func (n *node) keep(ctx context.Context) {
	for attempt := 0; n.rest(ctx, attempt); attempt++ {
		if err := n.tell(ctx, n.beatAt); err == nil {
			attempt = -1
		}
	}
}

// rest waits for the time of the next sign of life. It returns false when ctx has ended.
func (n *node) rest(ctx context.Context, attempt int) bool {
	if attempt > 0 {
		return pause.For(ctx, min(n.cfg.Backoff.after(attempt-1), n.cfg.Heartbeat))
	}
	c, err := n.gateways.current()
	if err != nil {
		return false
	}
	defer n.pool.release(c)
	until, cancel := context.WithTimeout(ctx, n.cfg.Heartbeat)
	defer cancel()
	if c.WaitForStateChange(until, connectivity.Ready) {
		return pause.For(ctx, min(n.cfg.Backoff.after(0), n.cfg.Heartbeat)) // a gateway that hangs up at once is not called at once for ever
	}
	return ctx.Err() == nil
}

// beatAt gives one gateway a sign of life, and registers with it where it does not know the node. A gateway without
// signs of life needs none.
func (n *node) beatAt(ctx context.Context, c wire.GatewayServiceClient) error {
	resp, err := c.Heartbeat(ctx, &wire.HeartbeatRequest{SenderId: n.cfg.ID})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return nil
	case err != nil:
		return err
	case !resp.GetSuccess():
		return n.registerAt(ctx, c)
	}
	return nil
}

// final reports whether trying again can't help.
func final(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Canceled:
		return false
	}
	return true
}

// keeper is the goroutine that keeps a node registered.
type keeper struct {
	mu   sync.Mutex // guards the fields below
	end  context.CancelFunc
	work sync.WaitGroup
}

// start runs keep until stop is called, unless it runs already.
func (k *keeper) start(ctx context.Context, keep func(context.Context)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end != nil || ctx.Err() != nil {
		return
	}
	ctx, k.end = context.WithCancel(ctx)
	k.work.Go(func() { keep(ctx) })
}

// stop ends what start has begun, and waits for it.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end != nil {
		k.end()
		k.work.Wait()
		k.end = nil
	}
}
