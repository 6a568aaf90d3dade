package aip

import (
	"context"
	"net"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
)

// policyName is the name of [policy].
const policyName = "agora_nodes"

func init() { balancer.Register(policy{}) } // gRPC finds policies by their names, and in no other way

// policy is the load balancing of the one gRPC channel of an edge: a call goes to the channel that its context names,
// and to no other. It is a [balancer.Builder], and a [balancer.Picker].
type policy struct{}

// Name implements balancer.Builder.
func (policy) Name() string { return policyName }

// Build implements balancer.Builder.
func (policy) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return nodesBalancer{cc}
}

// channelKey finds a channel in the context of a call, or of a connection, and among the attributes of an address.
type channelKey struct{}

// Pick implements balancer.Picker.
func (policy) Pick(call balancer.PickInfo) (balancer.PickResult, error) {
	ch, is := call.Ctx.Value(channelKey{}).(*channel)
	if !is {
		return balancer.PickResult{}, status.Error(codes.Internal, "the call goes nowhere")
	}
	return ch.pick()
}

// nodesBalancer is the policy at work.
type nodesBalancer struct{ cc balancer.ClientConn }

// startedKey finds in the resolver's state to whom a nodesBalancer is handed.
type startedKey struct{}

// UpdateClientConnState implements balancer.Balancer: it comes once, as the resolver has nothing to say but that.
func (b nodesBalancer) UpdateClientConnState(s balancer.ClientConnState) error {
	b.update()
	if started, is := s.ResolverState.Attributes.Value(startedKey{}).(chan balancer.ClientConn); is {
		select {
		case started <- b.cc:
		default:
		}
	}
	return nil
}

// update has the calls that wait look again.
func (b nodesBalancer) update() {
	b.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: policy{}})
}

// ResolverError implements balancer.Balancer.
func (nodesBalancer) ResolverError(error) {}

// UpdateSubConnState implements balancer.Balancer: each connection has a listener of its own.
func (nodesBalancer) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle implements balancer.Balancer.
func (nodesBalancer) ExitIdle() {}

// Close implements balancer.Balancer.
func (nodesBalancer) Close() {}

// begin makes the gRPC channel, where there is none; mu is held.
func (c *channels) begin() error {
	if c.conn != nil {
		return nil
	}
	started := make(chan balancer.ClientConn, 1)
	nodes := manual.NewBuilderWithScheme("nodes")
	nodes.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "nodes"}}, Attributes: attributes.New(startedKey{}, started)})
	conn, err := grpc.NewClient("nodes:///", c.options(nodes)...)
	if err != nil {
		return err
	}
	conn.Connect()
	c.conn, c.nodes = conn, <-started
	return nil
}

// open makes the channel's connection, which is not connected yet; all.mu is held.
func (ch *channel) open() error {
	cant := agora.Errorf(agora.InvalidRequest, "address %q can't be dialled", ch.at.address)
	if _, err := url.Parse("passthrough:///" + ch.at.address); err != nil {
		return cant
	}
	at := resolver.Address{Addr: ch.at.address, ServerName: authority(ch.at.address), Attributes: attributes.New(channelKey{}, ch)}
	//lint:ignore SA1019 what is deprecated is more than one address
	sub, err := ch.all.nodes.NewSubConn([]resolver.Address{at}, balancer.NewSubConnOptions{StateListener: ch.becomes})
	if err != nil {
		return cant
	}
	ch.sub = sub
	return nil
}

// authority returns an address as calls name it.
func authority(address string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.PathEscape(address), "%5B", "["), "%5D", "]")
}

// becomes takes another state of the connection. While it can't be made it is tried again and again, and calls fail.
func (ch *channel) becomes(s balancer.SubConnState) {
	ch.all.mu.Lock()
	again := ch.state == connectivity.TransientFailure && s.ConnectivityState == connectivity.Idle
	if ch.state != connectivity.TransientFailure || s.ConnectivityState != connectivity.Idle && s.ConnectivityState != connectivity.Connecting {
		ch.state, ch.why = s.ConnectivityState, s.ConnectionError
		ch.ready.Store(ch.state == connectivity.Ready)
		if ch.changed != nil {
			close(ch.changed)
			ch.changed = nil
		}
	}
	nodes := nodesBalancer{ch.all.nodes}
	ch.all.mu.Unlock()
	if again {
		ch.sub.Connect()
	}
	nodes.update()
}

// watch returns the state of the connection, how many were lost, and what is closed once the state is another one.
func (ch *channel) watch() (losts uint64, s connectivity.State, changed <-chan struct{}) {
	ch.all.mu.Lock()
	defer ch.all.mu.Unlock()
	if ch.changed == nil {
		ch.changed = make(chan struct{})
	}
	return ch.losts, ch.state, ch.changed
}

// pick returns the connection for a call, which waits while it is made.
func (ch *channel) pick() (balancer.PickResult, error) {
	if ch.ready.Load() {
		return balancer.PickResult{SubConn: ch.sub}, nil
	}
	ch.all.mu.Lock()
	state, why := ch.state, ch.why
	ch.all.mu.Unlock()
	switch state {
	case connectivity.TransientFailure:
		return balancer.PickResult{}, why
	case connectivity.Shutdown:
		return balancer.PickResult{}, errChannelClosed
	case connectivity.Idle:
		ch.sub.Connect()
	}
	return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
}

var errChannelClosed = status.Error(codes.Canceled, "the channel is closed")

// dial makes a connection to a node.
func (c *channels) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	ch, is := credentials.ClientHandshakeInfoFromContext(ctx).Attributes.Value(channelKey{}).(*channel)
	if is {
		err = ch.mayReach(ctx, conn.RemoteAddr())
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &nodeConn{NewQuietConn(conn, nil), nodeAddr{conn.RemoteAddr(), ch}}, nil
}

// nodeConn is a connection to a node.
type nodeConn struct {
	*QuietConn
	addr nodeAddr
}

// nodeAddr is where a nodeConn goes: the one thing of a connection by which gRPC says which one is lost.
type nodeAddr struct {
	net.Addr
	channel *channel
}

// RemoteAddr implements net.Conn.
func (c *nodeConn) RemoteAddr() net.Addr { return &c.addr }
