package aip

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	wire "github.com/agora-relay/agora/wire/aip"
)

// link is a connection to another gateway, whose nodes this one lists.
type link struct {
	gateway *Gateway
	address string
	end     context.CancelFunc
	done    chan struct{} // closed when its goroutine has ended
}

// feed is what the gateway behind a link says of its nodes.
type feed struct {
	channel *channel
	stream  grpc.ServerStreamingClient[NodeUpdate]
	cancel  context.CancelFunc
}

// begunTime is how long a gateway may take to say that it watches its nodes. One of another make may never say so.
const begunTime = time.Second

// ConnectToGateway has the gateway list the nodes of another one, by its own address, and pass on calls of them, until
// it is closed. It returns when they are listed. What is registered here goes before what another gateway has under the
// same id. The other one lists nodes of this one only when it is connected as well. A link that breaks is made again;
// meanwhile its nodes are not listed. Errors: the status of a gateway that can't be asked, and then there is no link;
// INVALID_REQUEST before Start.
func (g *Gateway) ConnectToGateway(ctx context.Context, address string) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	if g.Address() == "" {
		return agora.Errorf(agora.InvalidRequest, "the gateway serves nowhere yet: Start comes before ConnectToGateway")
	}
	l := &link{gateway: g, address: address, done: make(chan struct{})}
	within, end := context.WithCancel(g.life)
	l.end = end
	if there, err := g.add(l); there || err != nil {
		end()
		return err
	}
	stop := context.AfterFunc(ctx, end)
	f, err := l.open(within)
	if !stop() && err == nil {
		f.close(l)
		err = ctx.Err()
	}
	if err != nil {
		g.forget(l)
		return err
	}
	g.work.Go(func() {
		defer close(l.done)
		l.run(within, f)
	})
	return nil
}

// add notes a link, unless there is one to that address.
func (g *Gateway) add(l *link) (there bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return false, ErrClosed
	}
	if g.links[l.address] != nil {
		return true, nil
	}
	g.links[l.address] = l
	return false, nil
}

// forget undoes a link that could not be made.
func (g *Gateway) forget(l *link) {
	g.mu.Lock()
	if g.links[l.address] == l {
		delete(g.links, l.address)
	}
	g.mu.Unlock()
	l.end()
	g.directory.offer(l, true)
	close(l.done)
}

// DisconnectFromGateway ends a link: the nodes of the other gateway are listed no longer when it returns.
func (g *Gateway) DisconnectFromGateway(address string) {
	g.mu.Lock()
	l := g.links[address]
	delete(g.links, address)
	g.mu.Unlock()
	if l != nil {
		l.stop()
	}
}

// stop ends a link, and waits for that.
func (l *link) stop() {
	l.end()
	<-l.done
}

// open asks the other gateway for its nodes and for what becomes of them.
func (l *link) open(ctx context.Context) (*feed, error) {
	g := l.gateway
	c, err := g.pool.fresh(l.address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &feed{channel: c, cancel: cancel}
	if f.stream, err = g.auth.client(c).SubscribeToUpdates(l.asks(ctx), &wire.UpdateSubscriptionRequest{SubscriberId: g.cfg.ID}); err == nil {
		l.awaitBegin(ctx, f)
		err = l.look(ctx, c)
	}
	if err != nil {
		f.close(l)
		return nil, err
	}
	return f, nil
}

// asks returns ctx for a call that the gateway makes of itself.
func (l *link) asks(ctx context.Context) context.Context {
	return wire.WithPath(ctx, []string{l.gateway.cfg.ID})
}

// awaitBegin waits until the other gateway watches its nodes, so that none changes unseen between the list and the
// first change.
func (l *link) awaitBegin(ctx context.Context, f *feed) {
	begun := make(chan struct{})
	l.gateway.work.Go(func() {
		defer close(begun)
		f.stream.Header() // its error comes again with what is received
	})
	late := time.NewTimer(begunTime)
	defer late.Stop()
	select {
	case <-begun:
	case <-late.C:
	case <-ctx.Done():
	}
}

// look lists the nodes that the other gateway has now.
func (l *link) look(ctx context.Context, c *channel) error {
	ctx, cancel := context.WithTimeout(ctx, l.gateway.cfg.DialTimeout)
	defer cancel()
	peers, err := wire.AllNodes(l.asks(ctx), l.gateway.auth.client(c), &wire.GetNodesRequest{AgentId: l.gateway.cfg.ID}, mostNodes)
	if err != nil {
		return err
	}
	l.gateway.directory.offer(l, true, peers...)
	return nil
}

func (f *feed) close(l *link) {
	f.cancel()
	l.gateway.pool.release(f.channel)
}

// run keeps the nodes of the other gateway listed until ctx ends.
func (l *link) run(ctx context.Context, f *feed) {
	log := l.gateway.cfg.Log
	for f != nil {
		err := l.follow(ctx, f)
		f.close(l)
		if ctx.Err() == nil {
			log.Warn("the link to a gateway is lost", "gateway", l.address, "err", err)
		}
		f = l.again(ctx)
	}
	l.gateway.directory.offer(l, true)
}

// again opens a feed when the other gateway is there again; nil when ctx has ended. Its nodes are listed no longer once
// it was not there.
func (l *link) again(ctx context.Context) *feed {
	for attempt := 0; pause.For(ctx, l.gateway.cfg.Backoff.after(attempt)); attempt++ {
		f, err := l.open(ctx)
		if err == nil {
			return f
		}
		l.gateway.directory.offer(l, true)
	}
	return nil
}

// follow lists what the other gateway says of its nodes, until it says nothing more. One that knows no subscriptions is
// asked each Poll.
func (l *link) follow(ctx context.Context, f *feed) error {
	for {
		u, err := f.stream.Recv()
		if status.Code(err) == codes.Unimplemented {
			return l.poll(ctx, f)
		}
		if err != nil {
			return err
		}
		switch {
		case u.GetUpdateType() == Removed:
			l.gateway.directory.withdraw(l, u.GetNodeId())
		case u.GetPeer() != nil:
			l.gateway.directory.offer(l, false, u.GetPeer())
		}
	}
}

func (l *link) poll(ctx context.Context, f *feed) error {
	for pause.For(ctx, l.gateway.cfg.Poll) {
		if err := l.look(ctx, f.channel); err != nil {
			return err
		}
	}
	return ctx.Err()
}
