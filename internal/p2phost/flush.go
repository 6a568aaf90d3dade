package p2phost

import (
	"context"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"github.com/multiformats/go-multistream"
)

// flushTime is how long a peer has to say that it has what was written to it, before its connection is closed.
const flushTime = time.Second

// flush waits until the peers have what was written to them. A muxer drops what it has queued when its connection is
// closed, but it keeps the order: a peer that answers on a new stream has all that was written before. Peers that do
// not answer are waited for a second, all at the same time.
func flush(conns []network.Conn) {
	ctx, stop := context.WithTimeout(network.WithAllowLimitedConn(context.Background(), "flush"), flushTime)
	defer stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	for _, c := range conns {
		asking.Go(func() { answers(ctx, c) })
	}
}

// answers returns when a peer has answered on a new stream, whatever it says, or can't any more.
func answers(ctx context.Context, c network.Conn) {
	s, err := c.NewStream(ctx)
	if err != nil {
		return
	}
	defer func() { _ = s.Reset() }()
	if end, ok := ctx.Deadline(); ok && s.SetDeadline(end) == nil {
		_ = multistream.SelectProtoOrFail(ping.ID, s)
	}
}
