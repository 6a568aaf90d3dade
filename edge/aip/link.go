package aip

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire/aip"
)

// link is a link that this edge holds: it asks the gateway which nodes that has, and has them be here.
type link struct {
	presence.Link
	links   *links
	imports imports
	ctx     context.Context // ends when the edge lets go of the link
	stop    context.CancelFunc
	work    sync.WaitGroup
	leaves  atomic.Bool // the edge lets go of it

	mu    sync.Mutex // guards the fields below
	state string
	err   error // what went wrong last
}

// Timing of a link.
const (
	headersTime = 2 * time.Second        // that a gateway has to say that a subscription stands; not all do before they have something to tell
	askTime     = 30 * time.Second       // for the list of its nodes
	auditEvery  = time.Minute            // between two lists beside a subscription: what a subscription has left out shows there
	leastPause  = 250 * time.Millisecond // before a gateway that could not be reached is called again, at first and at most
	mostPause   = 10 * time.Second
)

// replyMost is how large a list of all nodes may be, in one answer or in pages.
const replyMost = 64 << 20

func newLink(l *links, at presence.Link) *link {
	k := &link{Link: at, links: l, state: LinkConnecting}
	k.ctx, k.stop = context.WithCancel(l.ctx)
	k.imports.init(k)
	return k
}

// leave has the edge let go of the link, once: permanently where it is over, else others go on with the sessions of its
// nodes. It does not block.
func (k *link) leave(over bool) {
	if k.leaves.Swap(true) {
		return
	}
	k.stop()
	k.links.work.Go(func() {
		k.work.Wait()
		k.imports.end(over)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(k.links.ctx), leaveTime)
		defer cancel()
		if err := k.links.node.Config().Presence.Links.Leave(ctx, k.Link, k.links.node.Holder()); err != nil {
			k.links.cfg.Log.Debug("link was not given back, and is taken over later", "address", k.Address, "err", err)
		}
		k.links.end(k)
		k.links.hurry()
		k.links.cfg.Log.Info("edge has let go of the link to a gateway", "address", k.Address, "tenant", k.Tenant, "over", over)
	})
}

// leaveTime bounds how long giving a link back holds up a door that closes.
const leaveTime = time.Second

// now returns how the link is.
func (k *link) now() linkState {
	k.mu.Lock()
	s := linkState{State: k.state}
	if k.err != nil {
		s.Error = status.Convert(k.err).Message()
	}
	k.mu.Unlock()
	s.Offered, s.Nodes = k.imports.count()
	return s
}

// is notes how the link is, and tells it where that is another thing than before.
func (k *link) is(state string, err error) {
	k.mu.Lock()
	was := k.state
	k.state = state
	if k.err = err; err != nil {
		k.err = statusOf(err).Err()
	}
	k.mu.Unlock()
	if state == was {
		return
	}
	k.counts(up(state), up(was))
	k.links.hurry()
	if err != nil {
		k.links.cfg.Log.Warn("gateway can't be reached, and its nodes stay as they were", "address", k.Address, "tenant", k.Tenant, "err", err)
	} else {
		k.links.cfg.Log.Info("gateway is linked", "address", k.Address, "tenant", k.Tenant, "state", state)
	}
}

func up(state string) bool { return state == LinkUp || state == LinkPolling }

// counts counts the link among those that are up, and no more where it was.
func (k *link) counts(is, was bool) {
	if is && !was {
		k.links.stats.Links.Add(1)
	} else if was && !is {
		k.links.stats.Links.Add(-1)
	}
}

// run follows the gateway until the edge lets go of the link.
func (k *link) run() {
	k.work.Go(k.imports.watch)
	defer func() { k.counts(false, up(k.now().State)) }()
	ch, err := k.links.channels.get(place{tenant: k.Tenant, address: k.Address})
	if err != nil {
		k.is(LinkDown, err)
		<-k.ctx.Done()
		return
	}
	defer ch.release()
	for wait := leastPause; ; wait = min(2*wait, mostPause) {
		begun := time.Now()
		err := k.follow(ch)
		if k.ctx.Err() != nil {
			return
		}
		k.is(LinkDown, err)
		if time.Since(begun) > mostPause {
			wait = leastPause
		}
		if !pause.For(k.ctx, wait/2+rand.N(wait)) {
			return
		}
	}
}

// follow has the nodes that the gateway offers be here, until that can't be asked any more: it returns why.
func (k *link) follow(ch *channel) error {
	ctx, cancel := context.WithCancel(k.links.over(k.ctx, nil))
	defer cancel()
	dialling, stop := context.WithTimeout(ctx, k.links.cfg.DialTimeout)
	defer stop()
	if _, err := ch.await(dialling); err != nil {
		return err
	}
	gateway := aip.NewGatewayServiceClient(ch)
	k.imports.anew()
	s, err := k.subscribe(ctx, gateway)
	if err != nil {
		return err
	}
	defer s.work.Wait()
	defer cancel()
	state, every := LinkUp, auditEvery
	for {
		if err := k.list(ctx, gateway); err != nil {
			return err
		}
		k.is(state, nil)
		switch err := k.hear(ctx, s, every); {
		case status.Code(err) == codes.Unimplemented && state == LinkUp:
			state, every = LinkPolling, k.links.cfg.Poll
		case err != nil:
			return err
		}
	}
}

// hear takes the updates that come until it is time for another list: it returns why no more come.
func (k *link) hear(ctx context.Context, s *updates, until time.Duration) error {
	timer := time.NewTimer(until)
	defer timer.Stop()
	for {
		select {
		case u := <-s.next:
			k.imports.update(u)
		case err := <-s.over:
			return err
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// list asks for all nodes.
func (k *link) list(ctx context.Context, gateway aip.GatewayServiceClient) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	asked := time.Now()
	in := &aip.GetNodesRequest{AgentId: k.links.cfg.GatewayID, Domain: aip.DefaultDomain}
	all, err := aip.AllNodes(ctx, gateway, in, replyMost, grpc.MaxCallRecvMsgSize(replyMost))
	if err == nil {
		k.imports.all(all, asked)
	}
	return err
}

// updates are those of a subscription.
type updates struct {
	next   chan *aip.NodeUpdate
	over   chan error    // holds why no more come, once
	stands chan struct{} // closed when the gateway has said that the subscription stands, or it is over
	work   sync.WaitGroup
}

// subscribe subscribes to the gateway's updates, and returns when the gateway has said that this stands, or has had the
// time to. Its goroutine ends with ctx.
func (k *link) subscribe(ctx context.Context, gateway aip.GatewayServiceClient) (*updates, error) {
	in, err := gateway.SubscribeToUpdates(ctx, &aip.UpdateSubscriptionRequest{SubscriberId: k.links.cfg.GatewayID})
	if err != nil {
		return nil, err
	}
	s := &updates{next: make(chan *aip.NodeUpdate), over: make(chan error, 1), stands: make(chan struct{})}
	s.work.Go(func() { s.read(ctx, in) })
	timer := time.NewTimer(headersTime)
	defer timer.Stop()
	select {
	case <-s.stands:
	case <-timer.C:
	case <-ctx.Done():
	}
	return s, nil
}

func (s *updates) read(ctx context.Context, in grpc.ServerStreamingClient[aip.NodeUpdate]) {
	_, _ = in.Header() // its error is that of the first update
	close(s.stands)
	for {
		u, err := in.Recv()
		if errors.Is(err, io.EOF) {
			err = errSubscriptionOver
		}
		if err != nil {
			s.over <- err
			return
		}
		select {
		case s.next <- u:
		case <-ctx.Done():
			return
		}
	}
}

var errSubscriptionOver = agora.Errorf(agora.Unavailable, "the gateway has ended the subscription")
