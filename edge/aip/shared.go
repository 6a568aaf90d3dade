package aip

import (
	"context"
	"sync"

	"github.com/agora-relay/agora/edge"
)

// shared is what the parts of a door have in common.
type shared struct {
	cfg    Config
	node   *edge.Node
	stats  *Stats
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	drains chan struct{} // closed when the edge drains, or the door is closed
	work   sync.WaitGroup
}

func newShared(n *edge.Node, cfg Config) *shared {
	s := &shared{cfg: cfg.withDefaults(n), node: n, stats: newStats(), drains: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// background runs f, which ends with the door; nothing where that is over.
func (s *shared) background(f func()) {
	if s.ctx.Err() == nil {
		s.work.Go(f)
	}
}
