package aip

import (
	"context"
	"crypto/tls"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// channel is a connection to an address, which several use at a time.
type channel struct {
	*grpc.ClientConn
	address string

	// guarded by the pool's lock
	users   int
	retired bool        // it is closed once nobody uses it
	unused  *time.Timer // closes it, while nobody uses it
}

// linger is how long a channel is kept that nobody uses.
const linger = time.Minute

// pool has one channel for each address. A channel lives while it is used, and for a while after.
type pool struct {
	dial func(address string) (*grpc.ClientConn, error)

	mu       sync.Mutex // guards the fields below
	closed   bool
	channels map[string]*channel   // by address; those that are not retired
	all      map[*channel]struct{} // the retired ones too
}

func newPool(dial func(string) (*grpc.ClientConn, error)) *pool {
	return &pool{dial: dial, channels: map[string]*channel{}, all: map[*channel]struct{}{}}
}

// get returns the channel to an address, which it need not have connected to yet. The caller owes a call of release.
// [ErrClosed] once the pool is closed.
func (p *pool) get(address string) (*channel, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	c := p.channels[address]
	if c == nil {
		conn, err := p.dial(address)
		if err != nil {
			return nil, err
		}
		c = &channel{ClientConn: conn, address: address}
		p.channels[address], p.all[c] = c, struct{}{}
	}
	if c.unused != nil {
		c.unused.Stop()
	}
	c.users++
	return c, nil
}

// fresh is get, but for a channel that has failed to connect and waits before it tries again: another one takes its
// place.
func (p *pool) fresh(address string) (*channel, error) {
	c, err := p.get(address)
	if err != nil || c.GetState() != connectivity.TransientFailure {
		return c, err
	}
	p.retire(c)
	p.release(c)
	return p.get(address)
}

// release ends one use of a channel.
func (p *pool) release(c *channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.users--
	switch {
	case c.users > 0 || p.closed:
	case c.retired:
		p.drop(c)
	default:
		c.unused = time.AfterFunc(linger, func() { p.expire(c) })
	}
}

// retire has the channel's next user get another one. Those who use it may go on.
func (p *pool) retire(c *channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.retired || p.closed {
		return
	}
	c.retired = true
	delete(p.channels, c.address)
	if c.users == 0 {
		p.drop(c)
	}
}

// expire closes a channel that nobody has used for a while.
func (p *pool) expire(c *channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.users == 0 && !c.retired && !p.closed {
		delete(p.channels, c.address)
		p.drop(c)
	}
}

// drop closes a channel. The lock is held.
func (p *pool) drop(c *channel) {
	delete(p.all, c)
	c.Close() // whose error only says that it was closed before
}

// close closes all channels, and ends what continues in them.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.all {
		if c.unused != nil {
			c.unused.Stop()
		}
		p.drop(c)
	}
}

// reach blocks until a channel is connected. UNAVAILABLE where it could not be made, or not before ctx ended.
func reach(ctx context.Context, c *grpc.ClientConn) error {
	for {
		s := c.GetState()
		switch s {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return status.Errorf(codes.Unavailable, "nothing answers at %s", strings.TrimPrefix(c.Target(), "dns:///"))
		case connectivity.Idle:
			c.Connect()
		}
		if !c.WaitForStateChange(ctx, s) {
			return status.Errorf(codes.Unavailable, "nothing answers in time at %s", strings.TrimPrefix(c.Target(), "dns:///"))
		}
	}
}

// dialer returns what makes channels to addresses: with TLS unless it is nil, and messages of so many bytes.
func dialer(secure *tls.Config, maxMessage int) func(string) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	return func(address string) (*grpc.ClientConn, error) {
		return grpc.NewClient("dns:///"+strings.ReplaceAll(address, "%", "%25"), // which else may be read as the path of a socket, or the like
			grpc.WithTransportCredentials(creds), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
				MinConnectTimeout: answerTime,
			}),
		)
	}
}
