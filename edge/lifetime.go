package edge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// lifetime is how far a node has come, and what it has under way: its loops, and what is done behind.
type lifetime struct {
	began    time.Time       // by the log's clock
	ctx      context.Context // ends when the node is closed
	stop     context.CancelFunc
	work     sync.WaitGroup // is waited for then
	draining atomic.Bool
	drained  atomic.Bool // Drain has told log and presence what it could
}

func (l *lifetime) begin(now time.Time) {
	l.began = now.UTC()
	l.ctx, l.stop = context.WithCancel(context.Background())
}

// background runs f, which may block for round trips, and is waited for.
func (l *lifetime) background(f func()) {
	if l.ctx.Err() == nil {
		l.work.Go(f)
	}
}
