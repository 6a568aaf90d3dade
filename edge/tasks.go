package edge

import (
	"context"
	"sync"
)

// tasks is what a node has under way: its loops, and what is done behind.
type tasks struct {
	ctx  context.Context // ends when the node is closed
	stop context.CancelFunc
	work sync.WaitGroup // is waited for then
}

func (t *tasks) start() { t.ctx, t.stop = context.WithCancel(context.Background()) }

// background runs f, which may block for round trips, and is waited for.
func (t *tasks) background(f func()) {
	if t.ctx.Err() == nil {
		t.work.Go(f)
	}
}
