// Package p2phost makes libp2p hosts of the library's parts: TCP and WebSocket on one port, Noise, Yamux; its root
// package would bring QUIC, WebRTC and more. It keeps their keys, and ends streams of one request and one answer.
package p2phost

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/gologshim"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/internal/origin"
)

// The library would write what it has to say to the standard error, in a form of its own. What matters comes back as an
// error.
func init() { gologshim.SetDefaultHandler(slog.DiscardHandler) }

// Config sets up a host. Key is required.
type Config struct {
	Key       crypto.PrivKey
	Listen    []ma.Multiaddr // of TCP; WebSocket shares the port of each. None for a host that only dials
	Announce  []ma.Multiaddr // where it says it is reached; where it listens if nil
	UserAgent string
	Reserves  bool // it can be reached through relays at which it reserves a place

	Open     func(address string) (net.Listener, error) // opens a port of TCP, and bounds the connections of it that say nothing; as here if nil
	Pages    origin.Policy                              // which web pages may have a WebSocket
	Admitter Admitter                                   // decides about connections once their peers are known; all may stay if nil

	// MayDial reports whether a peer may be dialled at an address; any may if nil.
	MayDial func(peer.ID, ma.Multiaddr) bool
}

func (c Config) withDefaults() Config {
	if c.Open == nil {
		c.Open = listenTCP
	}
	return c
}

// Host is a libp2p host. It does not look for ways to be reached, and bounds no connections: its Admitter does.
type Host struct {
	host.Host
	resources network.ResourceManager
	ports     *ports
}

// New returns a host, which listens where it is to. The caller owes it a call of Close.
func New(cfg Config) (*Host, error) {
	cfg = cfg.withDefaults()
	id, err := peer.IDFromPrivateKey(cfg.Key)
	if err != nil {
		return nil, err
	}
	resources, err := newResources()
	if err != nil {
		return nil, err
	}
	h := &Host{resources: resources}
	if h.Host, err = h.assemble(id, cfg); err != nil {
		return nil, errors.Join(err, resources.Close())
	}
	if err := h.Listen(cfg.Listen...); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Listen has a host listen at addresses of TCP besides, and by WebSocket at the port of each.
func (h *Host) Listen(tcp ...ma.Multiaddr) error {
	var all []ma.Multiaddr
	for _, at := range tcp {
		open, err := h.ports.add(at)
		if err != nil {
			return errors.Join(err, h.ports.close())
		}
		all = append(all, open...)
	}
	if len(all) == 0 {
		return nil
	}
	return h.Network().Listen(all...)
}

// Upgrader returns what makes a connection one of libp2p by a key. The admitter may be nil, and is asked about each.
func Upgrader(key crypto.PrivKey, resources network.ResourceManager, gater connmgr.ConnectionGater, a Admitter) (transport.Upgrader, error) {
	if a == nil {
		a = everybody{}
	}
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: newMuxer(a)}}
	secure, err := noise.New(noise.ID, key, muxers)
	if err != nil {
		return nil, err
	}
	return upgrader.New([]sec.SecureTransport{secure}, muxers, nil, resources, gater)
}

// Close ends the host, and returns when its connections are closed. What was written before has reached the peers by
// then; for those that do not answer it waits a second.
func (h *Host) Close() error {
	flush(h.Network().Conns())
	return errors.Join(h.Host.Close(), h.resources.Close())
}

// assemble puts the parts together, without listening.
func (h *Host) assemble(id peer.ID, cfg Config) (host.Host, error) {
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(store.AddPrivKey(id, cfg.Key), store.AddPubKey(id, cfg.Key.GetPublic())); err != nil {
		return nil, err
	}
	gater := &gater{mayDial: cfg.MayDial}
	bus := eventbus.NewBus()
	net, err := swarm.NewSwarm(id, store, bus, swarm.WithResourceManager(h.resources), swarm.WithConnectionGater(gater),
		swarm.WithDialTimeout(dialTimeout), swarm.WithDialTimeoutLocal(dialTimeout))
	if err != nil {
		return nil, err
	}
	up, err := Upgrader(cfg.Key, h.resources, gater, cfg.Admitter)
	if err != nil {
		return nil, errors.Join(err, net.Close())
	}
	h.ports = &ports{open: cfg.Open, pages: cfg.Pages, resources: h.resources, upgrader: up}
	plain, ws, err := newTransports(h.ports)
	if err != nil {
		return nil, errors.Join(err, net.Close())
	}
	if err := errors.Join(net.AddTransport(plain), net.AddTransport(ws)); err != nil {
		return nil, errors.Join(err, net.Close())
	}
	opts := &basichost.HostOpts{EventBus: bus, EnablePing: true, UserAgent: cfg.UserAgent, NegotiationTimeout: negotiation}
	if cfg.Announce != nil {
		opts.AddrsFactory = func([]ma.Multiaddr) []ma.Multiaddr { return slices.Clone(cfg.Announce) }
	}
	b, err := basichost.NewHost(net, opts)
	if err != nil {
		return nil, errors.Join(err, net.Close())
	}
	b.Start()
	if err := circuits(b, net, up, cfg.Reserves); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

const (
	dialTimeout = 5 * time.Second
	negotiation = 10 * time.Second // how long a stream's protocol may take to be agreed on
)

// circuits has a host dial through relays, and be reached through them where it reserves a place.
func circuits(h host.Host, net *swarm.Swarm, up transport.Upgrader, reserves bool) error {
	if reserves {
		return client.AddTransport(h, up)
	}
	c, err := client.New(h, up)
	if err != nil {
		return err
	}
	return net.AddTransport(c)
}

// newResources bounds what one peer may have: what there may be in all is for the Admitter to say, which knows who is
// who, and what a stream may hold for who serves it.
func newResources() (network.ResourceManager, error) {
	limits := rcmgr.PartialLimitConfig{
		PeerDefault: rcmgr.ResourceLimits{Conns: 64, ConnsInbound: 64, Streams: peerStreams, StreamsInbound: peerStreams},
	}
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits.Build(rcmgr.InfiniteLimits)), rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: math.MaxInt}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 64, ConnCount: math.MaxInt}}),
		rcmgr.WithNetworkPrefixLimit([]rcmgr.NetworkPrefixLimit{}, []rcmgr.NetworkPrefixLimit{}),
		rcmgr.WithConnRateLimiters(&rate.Limiter{}))
}

// peerStreams is how many streams a peer may have open at a time.
const peerStreams = 1024

// gater decides whom a host dials.
type gater struct {
	mayDial func(peer.ID, ma.Multiaddr) bool
}

// InterceptPeerDial implements connmgr.ConnectionGater.
func (*gater) InterceptPeerDial(peer.ID) bool { return true }

// InterceptAddrDial implements connmgr.ConnectionGater.
func (g *gater) InterceptAddrDial(p peer.ID, a ma.Multiaddr) bool {
	return g.mayDial == nil || g.mayDial(p, a)
}

// InterceptAccept implements connmgr.ConnectionGater.
func (*gater) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured implements connmgr.ConnectionGater.
func (*gater) InterceptSecured(network.Direction, peer.ID, network.ConnMultiaddrs) bool { return true }

// InterceptUpgraded implements connmgr.ConnectionGater.
func (*gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

var _ connmgr.ConnectionGater = (*gater)(nil)

// Whole returns the addresses of a host, but for those through relays, each with its peer id at the end.
func Whole(h host.Host) []string {
	own := ma.StringCast("/p2p/" + h.ID().String())
	var all []string
	for _, a := range h.Addrs() {
		if _, err := a.ValueForProtocol(ma.P_CIRCUIT); err != nil { // those through relays are their own to tell
			all = append(all, a.Encapsulate(own).String())
		}
	}
	return all
}
