package p2p

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/presence"
)

// shared is what the parts of a door have in common.
type shared struct {
	cfg    Config
	node   *edge.Node
	host   *p2phost.Host
	stats  Stats
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	work   sync.WaitGroup
	drains atomic.Bool // the door is to be empty soon

	closing sync.Mutex // guards the field below
	closed  bool
}

// newShared returns what parts of a door have in common, but for the host.
func newShared(n *edge.Node, cfg Config) *shared {
	s := &shared{cfg: cfg.withDefaults(n), node: n}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// self is this edge as libp2p reaches it.
func (s *shared) self() presence.Relay {
	return presence.Relay{Holder: s.node.Holder(), Peer: s.host.ID().String(), Addresses: p2phost.Whole(s.host), Draining: s.drains.Load()}
}

// handles returns what handles a stream, which is waited for.
func (s *shared) handles(f func(network.Stream)) network.StreamHandler {
	return func(stream network.Stream) {
		if !s.background(func() { f(stream) }) {
			_ = stream.Reset() // the host is about to close
		}
	}
}

// background runs f, which is waited for, unless the door is closed.
func (s *shared) background(f func()) bool {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(f)
	return true
}

// end has nothing begin any more, and ends what listens to ctx.
func (s *shared) end() {
	s.closing.Lock()
	s.closed = true
	s.closing.Unlock()
	s.stop()
}
