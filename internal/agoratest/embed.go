package agoratest

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/presence"
)

// Embed starts a cluster for who has no testing.TB, such as an Example, and returns
// where agents connect, an address for each edge, and what stops it. Options.Redis means nothing here.
func Embed(o Options) (urls []string, stop func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := &Cluster{opts: o.withDefaults(), log: slog.New(slog.DiscardHandler), over: make(chan struct{})}
	if c.nats, err = natsd.Embed(ctx, natsd.Config{Nodes: c.opts.Nodes}); err != nil {
		return nil, nil, err
	}
	p, err := presence.Embed()
	if err != nil {
		c.nats.Shutdown()
		return nil, nil, err
	}
	c.presence = p.Addr()
	stop = func() { c.stop(); p.Close(); c.nats.Shutdown() }
	for k := range c.opts.Edges {
		e, err := c.startEdge(k, "edge-"+strconv.Itoa(k), c.lease(k))
		if err != nil {
			stop()
			return nil, nil, err
		}
		c.edges = append(c.edges, e)
		urls = append(urls, e.url)
	}
	return urls, stop, nil
}
