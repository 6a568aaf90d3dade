package aip

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wire "github.com/agora-relay/agora/wire/aip"
)

// gateways are those that a node knows: it uses one at a time, and another one when that is gone.
type gateways struct {
	pool    *pool
	timeout time.Duration // of one call
	auth    []grpc.CallOption

	mu        sync.Mutex // guards the field below
	addresses []string   // the one in use first; replaced, never changed
}

// newGateways returns gateways which are called with a token where source gives one.
func newGateways(p *pool, timeout time.Duration, source func(context.Context) (string, error)) *gateways {
	g := &gateways{pool: p, timeout: timeout}
	if source != nil {
		g.auth = append(g.auth, grpc.PerRPCCredentials(bearer(source)))
	}
	return g
}

// bearer gives tokens as the metadata of calls.
type bearer func(context.Context) (string, error)

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b(ctx)
	if err != nil || token == "" {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: the one who configures a token without TLS means
// it.
func (bearer) RequireTransportSecurity() bool { return false }

// use replaces the gateways.
func (g *gateways) use(addresses []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addresses = addresses
}

// inOrder returns the addresses, the one in use first. They are not to be changed.
func (g *gateways) inOrder() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addresses
}

// first has the gateway at an address be the one in use.
func (g *gateways) first(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.addresses, address); i > 0 {
		g.addresses = slices.Concat(g.addresses[i:], g.addresses[:i])
	}
}

// leave has another gateway than the one at an address be the one in use, if that is.
func (g *gateways) leave(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.addresses) > 1 && g.addresses[0] == address {
		g.addresses = slices.Concat(g.addresses[1:], g.addresses[:1])
	}
}

// pick returns a channel to the first gateway that is there, which is in use from now on. Where none is, it returns one
// nevertheless: what is called by it says why. The caller owes the pool a call of release.
func (g *gateways) pick(ctx context.Context) (c *channel, there bool, err error) {
	for _, address := range g.inOrder() {
		if c != nil {
			g.pool.release(c)
		}
		if c, err = g.pool.fresh(address); err != nil {
			return nil, false, err
		}
		if g.reached(ctx, c) {
			g.first(address)
			return c, true, nil
		}
	}
	if c == nil {
		return nil, false, errNoGateway
	}
	return c, false, nil
}

func (g *gateways) reached(ctx context.Context, c *channel) bool {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	return reach(ctx, c.ClientConn) == nil
}

// current returns the channel to the gateway in use, as it is. The caller owes the pool a call of release.
func (g *gateways) current() (*channel, error) {
	all := g.inOrder()
	if len(all) == 0 {
		return nil, errNoGateway
	}
	return g.pool.get(all[0])
}

// do asks the gateway in use for what may be asked for again, and the others where it is not there or does not answer
// in time. It returns the address of the one that was asked last, and its error.
func (g *gateways) do(ctx context.Context, ask func(context.Context, wire.GatewayServiceClient) error) (at string, err error) {
	for range max(1, len(g.inOrder())) {
		c, there, fails := g.pick(ctx)
		if fails != nil {
			return at, fails
		}
		at, err = c.address, g.once(ctx, c, ask)
		g.pool.release(c)
		if code := status.Code(err); !there || ctx.Err() != nil || code != codes.Unavailable && code != codes.DeadlineExceeded {
			return at, err
		}
		g.leave(at)
	}
	return at, err
}

// once asks one gateway. One that says nothing in time gets a new channel the next time: the one that it has may lead
// nowhere.
func (g *gateways) once(ctx context.Context, c *channel, ask func(context.Context, wire.GatewayServiceClient) error) error {
	within, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	err := ask(within, g.client(c))
	if within.Err() != nil && ctx.Err() == nil {
		g.pool.retire(c)
	}
	return err
}

// client returns the calls of the gateway at the end of a channel, with credentials.
func (g *gateways) client(c *channel) wire.GatewayServiceClient {
	return wire.NewGatewayServiceClient(authorized{c, g.auth})
}

// authorized is a channel whose calls carry credentials.
type authorized struct {
	grpc.ClientConnInterface
	auth []grpc.CallOption
}

// Invoke implements grpc.ClientConnInterface.
func (a authorized) Invoke(ctx context.Context, method string, in, out any, opts ...grpc.CallOption) error {
	return a.ClientConnInterface.Invoke(ctx, method, in, out, append(opts, a.auth...)...)
}

// NewStream implements grpc.ClientConnInterface.
func (a authorized) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return a.ClientConnInterface.NewStream(ctx, d, method, append(opts, a.auth...)...)
}
