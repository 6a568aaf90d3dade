// Package aip is the door for the AIP dialect: the gRPC gateway that agents and toolboxes register with. The edge dials
// each of them, and forwards sessions and tool calls between them as the bytes that they are; agents of other dialects
// are reached by messages of the core. No rule of the relay lives here.
package aip

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	pages "github.com/agora-relay/agora/internal/origin" // origin is a type of this package
	"github.com/agora-relay/agora/wire/aip"
)

// Config sets up a Door. Carriers is required.
type Config struct {
	Advertise        string             // aip.advertise: HOST:PORT at which agents of other dialects are listed; that of the listener if empty
	MaxMessage       int                // aip.max-message: bytes of one message; 16 MiB
	MaxHeader        int                // server.max-header: bytes of the metadata of a call; 32 KiB
	DialTimeout      time.Duration      // aip.dial-timeout: how long a node may take to be connected to; 5s
	HeartbeatTimeout time.Duration      // aip.heartbeat-timeout: after so long without a sign of life a node is deregistered; 30s
	StopWait         time.Duration      // aip.stop-wait: how long a session that was stopped waits for its first answer; 30s
	GatewayID        string             // aip.gateway-id: names the cluster to the gateways that it is linked to; of the cluster's own making
	Links            []string           // aip.link: HOST:PORT of gateways that the cluster is linked to
	Poll             time.Duration      // between two looks at a gateway that takes no subscriptions; 10s
	TLS              *tls.Config        // of the listener; none if nil
	NodeTLS          func() *tls.Config // by which nodes and other gateways are dialled now; none if nil
	Pages            pages.Policy       // which web pages may call, by what translates for browsers
	Carriers         *carrier.Carriers  // reach the tools of agents of other dialects; used, not owned
	Ready            func() error       // nil while new agents should come to this edge; the node's if nil

	// Admitted learns of the context of each call that was let in; what it returns is called when the call ends. May
	// be nil.
	Admitted func(context.Context) (ended func())

	Log *slog.Logger // discards if nil
}

func (c Config) withDefaults(n *edge.Node) Config {
	c.MaxMessage = cmp.Or(c.MaxMessage, 16<<20)
	c.MaxHeader = cmp.Or(c.MaxHeader, 32<<10)
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.HeartbeatTimeout = cmp.Or(c.HeartbeatTimeout, 30*time.Second)
	c.StopWait = cmp.Or(c.StopWait, 30*time.Second)
	c.GatewayID = cmp.Or(c.GatewayID, "agora-"+n.Config().Broker.Cluster())
	c.Poll = cmp.Or(c.Poll, 10*time.Second)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Ready == nil {
		c.Ready = n.Ready
	}
	if c.Admitted == nil {
		c.Admitted = func(context.Context) func() { return func() {} }
	}
	return c
}

// Door is the AIP door of one edge. Its methods may be called at the same time.
type Door struct {
	*shared
	server   *grpc.Server
	mute     func() // stops answering doors of other edges
	drainAll func() // closes drains, once

	channels    *channels
	catalog     *catalog
	registry    *registry
	router      *router
	links       *links
	interceptor interceptor
	subscribers subscribers
}

// New returns a door of a node. It serves nobody until Serve, and adopts nodes of other edges from now on.
func New(n *edge.Node, cfg Config) *Door {
	s := newShared(n, cfg)
	d := &Door{shared: s, drainAll: sync.OnceFunc(func() { close(s.drains) })}
	d.channels = newChannels(n.Config().Dialer, n.Config().Presence.Dials, &d.cfg)
	d.catalog = &catalog{shared: s}
	d.registry = &registry{shared: s, channels: d.channels}
	d.router = &router{shared: s, channels: d.channels, registry: d.registry}
	d.links = newLinks(s, d.channels, d.catalog, d.registry)
	d.interceptor = interceptor{shared: s, refusals: edge.NewRefusalLog(d.cfg.Log)}
	d.serve()
	d.cfg.Carriers.Register(aip.Dialect, byMail{d.cfg.Carriers.Mail()})
	n.Adopts(aip.Dialect, d.registry)
	mute, err := n.HearPeers(aip.Dialect, d.answerPeer)
	if err != nil {
		d.cfg.Log.Warn("other edges can't ask this one's door", "err", err)
		mute = func() {}
	}
	d.mute = mute
	d.work.Go(func() { d.tick(d.ctx) })
	d.work.Go(d.links.run)
	d.work.Go(d.registry.keepAddresses)
	return d
}

// serve makes the server, and has it offer its services.
func (d *Door) serve() {
	d.server = grpc.NewServer(d.options()...)
	bounded := d.interceptor.bounded
	for _, s := range append(nodeServices(), gatewayService()) {
		d.server.RegisterService(bounded(s), gateway{Door: d})
	}
	d.server.RegisterService(bounded(aip.IdentityService(func() aip.Identity { return aip.Identity{} })), d) // a gateway is no node
	d.server.RegisterService(bounded(&grpc_health_v1.Health_ServiceDesc), &health{shared: d.shared})
	reflection.Register(d.server)
}

// streams is how many calls of one connection are served at a time. More of them wait.
const streams = 1024

// workers is how many goroutines wait for calls, with stacks that have grown already. More calls than that take new
// ones.
const workers = 64

// What may have been sent to this edge, of a stream until it is read, and of a connection until it has come. Windows
// that gRPC sizes by itself grow up to 16 MiB, and are measured by a ping and its answer beside each message that comes
// alone. That of a call is the smallest that gRPC has, as nobody has counted yet what comes into it.
const (
	streamWindow = 64 << 10
	nodeWindow   = 512 << 10 // of a stream from a node
	connWindow   = 4 << 20
)

// options returns those of the server.
func (d *Door) options() []grpc.ServerOption {
	all := []grpc.ServerOption{
		grpc.ForceServerCodecV2(aip.Codec{}),
		grpc.MaxRecvMsgSize(d.cfg.MaxMessage), grpc.MaxSendMsgSize(d.cfg.MaxMessage + replyRoom),
		grpc.MaxHeaderListSize(uint32(d.cfg.MaxHeader)), grpc.MaxConcurrentStreams(streams), grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 15 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.InTapHandle(d.interceptor.arrive), grpc.StreamInterceptor(d.interceptor.stream), grpc.NumStreamWorkers(workers),
		grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connWindow),
	}
	if d.cfg.TLS != nil {
		all = append(all, grpc.Creds(credentials.NewTLS(d.cfg.TLS)))
	}
	return all
}

// replyRoom is how much larger an answer of the gateway's own may be than a message that it takes: a list of all nodes.
const replyRoom = 48 << 20

// Serve serves the one who connects to a listener, which is the door's from now on, until Close. It returns nil then,
// else why it can't go on.
func (d *Door) Serve(l net.Listener) error {
	d.catalog.serves(l.Addr())
	if err := d.server.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Stats returns the door's counters. They go on counting.
func (d *Door) Stats() *Stats { return d.stats }

// Drain has callers go elsewhere with their next call, and returns when every call has ended or ctx is over. Nodes are
// adopted by other edges as the edge's node drains.
func (d *Door) Drain(ctx context.Context) {
	d.drainAll()
	d.interceptor.active.drain() // watches of nodes are begun again elsewhere
	d.links.drain()
	done := make(chan struct{})
	d.work.Go(func() {
		defer close(done)
		d.server.GracefulStop() // ends with Close at the latest
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Close serves nobody any more, ends every call with UNAVAILABLE and every connection to nodes. Idempotent.
func (d *Door) Close() {
	d.drainAll()
	d.interceptor.active.end(errGone)
	d.stop()
	d.mute()
	d.server.Stop()
	d.registry.held.close()
}

// Wait returns when nothing of the door runs, after [Door.Close].
func (d *Door) Wait() {
	d.work.Wait()
	d.channels.close()
}

var errGone = &agora.Error{Code: agora.Unavailable, Message: "the edge goes away: call another one", RetryAfter: 100 * time.Millisecond}

// tick looks once a second after what lasts: nodes that are silent, calls whose credentials have ended, channels that
// nobody uses.
func (d *Door) tick(ctx context.Context) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		d.registry.held.sweep(d.cfg.HeartbeatTimeout)
		d.interceptor.active.check()
		d.channels.sweep()
	}
}
