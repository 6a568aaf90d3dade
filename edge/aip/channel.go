package aip

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire/aip"
)

// channels are the connections of an edge to the addresses of nodes, shared by all who call there. All of them belong
// to one gRPC channel, whose calls say to which address they go (policy.go): a channel each takes three goroutines more
// and twice the memory.
type channels struct {
	dialer    *dial.Dialer
	addresses presence.Dials // which node has what an address reaches
	cfg       *Config

	mu     sync.Mutex // guards the fields below, and the fields of each channel that say so
	open   map[place]*channel
	conn   *grpc.ClientConn    // nil before the first channel
	nodes  balancer.ClientConn // makes the connections of conn
	closed bool
}

// place names a channel: tenants share none, nor do nodes. node is empty for that of a gateway.
type place struct{ tenant, address, node string }

// channel is the connection to one address: gRPC makes it again while it is called. It is a [grpc.ClientConnInterface].
type channel struct {
	all *channels
	at  place
	sub balancer.SubConn

	ready atomic.Bool // state is READY

	state   connectivity.State // guarded by all.mu, as are the fields below
	why     error              // it could not be connected; of TRANSIENT_FAILURE
	changed chan struct{}      // closed when state changes; nil where nobody waits for that
	users   int
	since   time.Time // nobody has used it since
	lost    []*func() // called when a connection of it is lost, which must not block
	losts   uint64    // connections that were

	reached  net.Addr // by the connection that was made last; nil before the first one
	claiming int      // registrations that are about to claim its address
}

func newChannels(d *dial.Dialer, addresses presence.Dials, cfg *Config) *channels {
	return &channels{dialer: d, addresses: addresses, cfg: cfg, open: map[place]*channel{}}
}

// unusedFor is how long a channel that nobody uses is kept.
const unusedFor = time.Minute

// get returns the channel of a place, which need not be connected yet. The caller owes it a call of release.
func (c *channels) get(at place) (*channel, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.open[at]; ch != nil {
		ch.users++
		return ch, nil
	}
	if c.closed {
		return nil, errGone
	}
	if err := c.begin(); err != nil {
		return nil, err
	}
	ch := &channel{all: c, at: at, users: 1, state: connectivity.Idle}
	if err := ch.open(); err != nil {
		return nil, err
	}
	c.open[at] = ch
	return ch, nil
}

// Invoke implements grpc.ClientConnInterface.
func (ch *channel) Invoke(ctx context.Context, method string, in, out any, opts ...grpc.CallOption) error {
	return ch.all.conn.Invoke(ch.calls(ctx), method, in, out, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (ch *channel) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return ch.all.conn.NewStream(ch.calls(ctx), desc, method, opts...)
}

// calls returns the context of a call by this channel: it says which node is meant.
func (ch *channel) calls(ctx context.Context) context.Context {
	if ch.at.node != "" {
		ctx = aip.Meaning(ctx, ch.at.node)
	}
	return context.WithValue(ctx, channelKey{}, ch)
}

// options returns those of the gRPC channel.
func (c *channels) options(nodes resolver.Builder) []grpc.DialOption {
	creds, buffer := insecure.NewCredentials(), readBuffer
	if c.cfg.NodeTLS != nil {
		creds, buffer = newNodeTLS(c.cfg.NodeTLS), readBufferTLS
	}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(aip.Codec{}), grpc.MaxCallRecvMsgSize(c.cfg.MaxMessage), grpc.MaxCallSendMsgSize(c.cfg.MaxMessage+frameRoom)),
		grpc.WithContextDialer(c.dial),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: c.cfg.DialTimeout,
		}),
		grpc.WithIdleTimeout(0), grpc.WithNoProxy(), grpc.WithReadBufferSize(buffer), grpc.WithDisableServiceConfig(),
		grpc.WithStaticStreamWindowSize(nodeWindow), grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithUserAgent("agora"), grpc.WithStatsHandler(observer{}),
		grpc.WithResolvers(nodes), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"` + policyName + `":{}}]}`),
	}
}

// A connection of plain TCP has its read buffer only while something comes; one of TLS always, beside the record that
// TLS keeps, of which it is filled.
const (
	readBuffer    = 32 << 10
	readBufferTLS = 4 << 10
)

// frameRoom is how much longer a message may become on its way: ids are put in their place.
const frameRoom = 4 << 10

// lost tells those who hold a channel that a connection of it is gone.
func (c *channels) lost(ch *channel) {
	c.mu.Lock()
	ch.losts++
	tell := slices.Clone(ch.lost)
	c.mu.Unlock()
	for _, f := range tell {
		(*f)()
	}
}

// onLost has a function called when a connection of the channel is lost, until offLost. It must not block. since is
// what await has returned: false says that the connection which it has found was lost meanwhile.
func (ch *channel) onLost(f *func(), since uint64) bool {
	ch.all.mu.Lock()
	defer ch.all.mu.Unlock()
	ch.lost = append(ch.lost, f)
	return ch.losts == since
}

// offLost has the function called no more.
func (ch *channel) offLost(f *func()) {
	ch.all.mu.Lock()
	defer ch.all.mu.Unlock()
	ch.lost = slices.DeleteFunc(ch.lost, func(other *func()) bool { return other == f })
}

// await waits until the channel is connected, and returns what tells the connection from later ones: see onLost.
// FORBIDDEN where its address may not be dialled, UNAVAILABLE where nobody answers as long as ctx lasts.
func (ch *channel) await(ctx context.Context) (losts uint64, err error) {
	if err := ch.all.dialer.Check(ctx, ch.at.address); err != nil {
		return 0, err
	}
	for {
		losts, state, changed := ch.watch()
		switch state {
		case connectivity.Ready:
			return losts, nil
		case connectivity.Idle:
			ch.sub.Connect()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, agora.Errorf(agora.Unavailable, "address %q can't be reached", ch.at.address)
		}
	}
}

// release says that a caller uses the channel no more.
func (ch *channel) release() {
	ch.all.mu.Lock()
	defer ch.all.mu.Unlock()
	if ch.users--; ch.users == 0 {
		ch.since = time.Now()
	}
}

// sweep closes the channels that nobody has used for a while.
func (c *channels) sweep() {
	for _, ch := range c.unused(time.Now().Add(-unusedFor)) {
		ch.sub.Shutdown() // nobody calls by it
	}
}

// unused takes out the channels that nobody has used since a time.
func (c *channels) unused(since time.Time) (all []*channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, ch := range c.open {
		if ch.users == 0 && !ch.since.After(since) {
			delete(c.open, at)
			all = append(all, ch)
		}
	}
	return all
}

// drop closes a channel that nobody uses now at once, so that who comes next dials again.
func (c *channels) drop(at place) {
	c.mu.Lock()
	ch := c.open[at]
	if ch == nil || ch.users > 0 {
		c.mu.Unlock()
		return
	}
	delete(c.open, ch.at)
	c.mu.Unlock()
	ch.sub.Shutdown() // nobody calls by it
}

// close closes every channel, permanently.
func (c *channels) close() {
	c.mu.Lock()
	conn := c.conn
	c.open, c.closed = map[place]*channel{}, true
	c.mu.Unlock()
	if conn != nil {
		conn.Close() // its calls have ended
	}
}
