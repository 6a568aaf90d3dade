// Package p2p is the door for peers of libp2p: a host that offers cards and handoffs, and relays circuits to peers that
// have reserved a place at this edge or at another one. Agents of other dialects are peers there as well, whose
// circuits the edge ends itself. No rule of the relay of messages lives here.
package p2p

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/origin"
	"github.com/agora-relay/agora/internal/p2phost"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// Config sets up a Door. Key and Carriers are required.
type Config struct {
	Key         crypto.PrivKey                             // p2p.key
	ClusterKey  []byte                                     // p2p.cluster-key: of it the keys of agents of other dialects are derived; they are no peers if nil
	Listen      []ma.Multiaddr                             // p2p-addr: of TCP; WebSocket shares the port of each
	Announce    []ma.Multiaddr                             // p2p.announce: where the edge is reached; where it listens if nil
	Allow       []peer.ID                                  // p2p.allow: peers that nobody need bind
	Connections int                                        // p2p.connections; 4096
	Relay       Relay                                      // p2p.relay
	Handoff     Handoff                                    // handoff
	Version     string                                     // of the cluster, as its card tells it
	Open        func(address string) (net.Listener, error) // opens a port of TCP; [net.Listen] if nil
	Pages       origin.Policy                              // server.origins: which web pages may have a WebSocket
	Carriers    *carrier.Carriers                          // reach the agents of all dialects; used, not owned
	Ready       func() error                               // nil while new peers should come to this edge; the node's if nil
	Log         *slog.Logger                               // discards if nil
}

// Relay is what the relay of an edge allows.
type Relay struct {
	Off          bool          // p2p.relay: it takes no reservations, and makes no circuits to peers that are not the edge's own
	Reservations int           // p2p.relay.reservations; 4096
	PerIP        int           // p2p.relay.reservations-per-ip; 256
	Circuits     int           // p2p.relay.circuits: of one peer, in either direction; 64
	Data         int64         // p2p.relay.data: bytes of a circuit each way; 64 MiB
	Duration     time.Duration // p2p.relay.duration: of a circuit; 10m
}

// Handoff is how large and slow a handoff may be.
type Handoff struct {
	Request   int           // handoff.request: bytes of it; 16 MiB
	Within    time.Duration // until a request is complete; 30s
	FirstByte time.Duration // handoff.first-byte: until the answer begins; 10s
	Idle      time.Duration // handoff.idle: between two pieces of the answer; 60s
	Answer    int64         // handoff.answer: bytes of it; 64 MiB
}

func (c Config) withDefaults(n *edge.Node) Config {
	c.Connections = cmp.Or(c.Connections, 4096)
	c.Relay.Reservations = cmp.Or(c.Relay.Reservations, 4096)
	c.Relay.PerIP = cmp.Or(c.Relay.PerIP, 256)
	c.Relay.Circuits = cmp.Or(c.Relay.Circuits, 64)
	c.Relay.Data = cmp.Or(c.Relay.Data, 64<<20)
	c.Relay.Duration = cmp.Or(c.Relay.Duration, 10*time.Minute)
	c.Handoff.Request = cmp.Or(c.Handoff.Request, 16<<20)
	c.Handoff.Within = cmp.Or(c.Handoff.Within, 30*time.Second)
	c.Handoff.FirstByte = cmp.Or(c.Handoff.FirstByte, 10*time.Second)
	c.Handoff.Idle = cmp.Or(c.Handoff.Idle, time.Minute)
	c.Handoff.Answer = cmp.Or(c.Handoff.Answer, 64<<20)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Ready == nil {
		c.Ready = n.Ready
	}
	if c.Open == nil {
		c.Open = func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
	}
	return c
}

// Door is the libp2p door of one edge. Its methods may be called at the same time.
type Door struct {
	*shared
	relays   *relays
	conns    *conns
	reserved *reservations
	server   *server
	registry *registry
	hop      *hop
}

// New returns a door that listens and serves. The caller owes it calls of Close and Wait.
func New(n *edge.Node, cfg Config) (*Door, error) {
	s := newShared(n, cfg)
	peers := &known{shared: s}
	reserved := newReservations(s, peers)
	relays := &relays{shared: s, reserved: reserved}
	dialer := &dialer{s, peers, relays}
	derived := &derived{key: s.cfg.ClusterKey}
	conns := newConns(s, peers, relays)
	d := &Door{shared: s, relays: relays, conns: conns, reserved: reserved, server: &server{s, peers, conns, derived}}
	d.registry = &registry{s, peers, relays, reserved, dialer, derived}
	d.hop = &hop{shared: s, peers: peers, conns: conns, relays: relays, reserved: reserved, circuits: &circuits{shared: s}, dialer: dialer, derived: derived, server: d.server}
	var err error
	d.host, err = p2phost.New(p2phost.Config{
		Key: d.cfg.Key, Announce: d.cfg.Announce, Open: d.conns.open, Pages: d.cfg.Pages, Admitter: d.conns,
		UserAgent: "agora/" + cmp.Or(d.cfg.Version, "dev"), MayDial: dialer.mayDial,
	})
	if err != nil {
		d.stop()
		return nil, err
	}
	d.cfg.Carriers.Register(wire.Dialect, peerCarrier{dialer})
	if err := d.serve(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// serve has the host offer its protocols, and the edge be known as a relay.
func (d *Door) serve() error {
	if err := d.hop.open(); err != nil {
		return err
	}
	d.host.SetStreamHandler(proto.ProtoIDv2Hop, d.handles(d.hop.handle))
	d.host.SetStreamHandler(wire.CardProtocol, d.handles(func(s network.Stream) { d.server.serveCard(asked(s)) }))
	d.host.SetStreamHandler(wire.HandoffProtocol, d.handles(func(s network.Stream) { d.server.serveHandoff(asked(s)) }))
	d.host.Network().Notify(&network.NotifyBundle{
		ConnectedF: func(network.Network, network.Conn) { d.stats.Connections.Add(1) },
		DisconnectedF: func(n network.Network, c network.Conn) {
			d.stats.Connections.Add(-1)
			d.reserved.disconnected(n, c.RemotePeer())
		},
	})
	if err := d.host.Listen(d.cfg.Listen...); err != nil {
		return err
	}
	if err := d.relays.put(d.ctx); err != nil { // so that who finds the edge ready learns of it
		d.cfg.Log.Debug("other edges were not told where this one is reached", "err", err)
	}
	d.work.Go(d.relays.announce)
	d.work.Go(d.reserved.keep)
	d.work.Go(d.conns.recheck)
	return nil
}

// strangers returns the connections of peers that are no edges.
func (d *Door) strangers() (all []network.Conn) {
	for _, c := range d.host.Network().Conns() {
		if !d.relays.has(c.RemotePeer()) {
			all = append(all, c)
		}
	}
	return all
}

// ID returns the peer id of the edge.
func (d *Door) ID() peer.ID { return d.host.ID() }

// Addresses returns where the edge is reached, each with its peer id.
func (d *Door) Addresses() []string { return p2phost.Whole(d.host) }

// Edges returns the edges of the cluster as libp2p reaches them, this one first. It asks presence; while that is away
// the others are as they were known.
func (d *Door) Edges(ctx context.Context) Edges { return d.registry.list(ctx) }

// Mount adds the door's paths to a mux:
//
//	POST /register  registers a peer as an agent without a connection, or renews that
//	GET /peers      the peers of the tenant; ?agent_name=, ?skill= those that fit
//	GET /p2p        the edges of the cluster, as libp2p reaches them
//	GET /p2p/access whether a peer may speak to an agent of the caller's
func (d *Door) Mount(k *web.Kit, mux *http.ServeMux) {
	k.Handle(mux, "/register", web.Methods{http.MethodPost: d.registry.register})
	k.HandlePath(mux, "/peers", web.Path{Methods: web.Methods{http.MethodGet: d.registry.listPeers}, Reads: true})
	k.HandlePath(mux, "/p2p", web.Path{Methods: web.Methods{http.MethodGet: d.registry.listEdges}, Reads: true, Counts: true})
	k.HandlePath(mux, "/p2p/access", web.Path{Methods: web.Methods{http.MethodGet: d.registry.askAccess}, Reads: true, Counts: true})
}

// Stats returns the counters of the door. They go on counting.
func (d *Door) Stats() *Stats { return &d.stats }

// Close lets nobody in any more, and ends what is left. Idempotent.
func (d *Door) Close() {
	d.end()
	d.hop.close()
	if err := d.host.Close(); err != nil {
		d.cfg.Log.Debug("host did not close well", "err", err)
	}
}

// Wait returns when nothing of the door runs. It goes behind Close.
func (d *Door) Wait() { d.work.Wait() }
