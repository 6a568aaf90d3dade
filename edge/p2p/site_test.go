package p2p_test

import (
	"context"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/edge/rest"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
)

// site is a cluster whose edges have the door, beside those for plain HTTP, and for WebSockets at /asks, by which peers
// are asked.
type site struct {
	*agoratest.Cluster
	t testing.TB

	mu    sync.Mutex // guards the field below
	doors []*p2p.Door
}

// setup says what a site is to be like. The zero value will do.
type setup struct {
	agoratest.Options
	door p2p.Config
}

// open starts a site, which ends with the test.
func open(t testing.TB, s setup) *site {
	t.Helper()
	at := &site{t: t}
	s.Doors = []func(agoratest.Entry) (agoratest.Opened, error){
		func(e agoratest.Entry) (agoratest.Opened, error) { return at.opens(e, s.door) },
	}
	at.Cluster = agoratest.Start(t, s.Options)
	return at
}

// opened is the doors of one edge.
type opened struct {
	*web.Kit
	door *p2p.Door
	asks *ws.Door
}

func (s *site) opens(e agoratest.Entry, cfg p2p.Config) (agoratest.Opened, error) {
	key, err := p2phost.NewKey()
	if err != nil {
		return nil, err
	}
	cfg.Key, cfg.Listen, cfg.Carriers = key, []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/tcp/0")}, carrier.New(nil)
	e.Node.Screens(cfg.Carriers.Screen)
	d, err := p2p.New(e.Node, cfg)
	if err != nil {
		return nil, err
	}
	kit := web.New(e.Node, web.Config{})
	rest.Mount(kit, e.Mux, cfg.Carriers)
	d.Mount(kit, e.Mux)
	asks := ws.New(e.Node, ws.Config{Carriers: cfg.Carriers})
	e.Mux.Handle("/asks", asks)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doors = append(s.doors, d)
	return &opened{kit, d, asks}, nil
}

// Drain empties them.
func (o *opened) Drain(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { o.door.Drain(ctx) })
	o.Kit.Drain(ctx)
	all.Wait()
}

// Close ends all of them.
func (o *opened) Close() {
	o.door.Close()
	o.Kit.Close()
	o.asks.Close()
}

// Wait returns when nothing of them runs.
func (o *opened) Wait() {
	o.door.Wait()
	o.Kit.Wait()
	o.asks.Wait()
}

// door returns that of edge k.
func (s *site) door(k int) *p2p.Door {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doors[k]
}

// at returns how edge k is reached.
func (s *site) at(k int) peer.AddrInfo {
	s.t.Helper()
	all := s.door(k).Addresses()
	info, err := peer.AddrInfoFromString(all[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return *info
}

// host is a peer of the tests' own.
type host struct {
	*p2phost.Host
	s   *site
	key crypto.PrivKey
}

// enter makes a peer that listens nowhere, and ends with the test.
func (s *site) enter() *host {
	s.t.Helper()
	return s.makes(p2phost.Config{Reserves: true})
}

// listens is enter for a peer that listens.
func (s *site) listens() *host {
	s.t.Helper()
	return s.makes(p2phost.Config{Listen: []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/tcp/0")}})
}

func (s *site) makes(cfg p2phost.Config) *host {
	s.t.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		s.t.Fatal(err)
	}
	return s.keyed(key, cfg)
}

// keyed makes a peer that has a key.
func (s *site) keyed(key crypto.PrivKey, cfg p2phost.Config) *host {
	s.t.Helper()
	cfg.Key = key
	h, err := p2phost.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = h.Close() })
	return &host{h, s, key}
}

// reserve reserves a place at edge k.
func (h *host) reserve(k int) {
	h.s.t.Helper()
	if _, err := client.Reserve(await.Context(h.s.t), h, h.s.at(k)); err != nil {
		h.s.t.Fatal(err)
	}
}

// opens opens a stream to another peer through edge k.
func (h *host) opens(k int, to peer.ID, p protocol.ID) (network.Stream, error) {
	ctx := network.WithAllowLimitedConn(await.Context(h.s.t), "test")
	return h.stream(ctx, k, to, p)
}

func (h *host) stream(ctx context.Context, k int, to peer.ID, p protocol.ID) (network.Stream, error) {
	at := h.s.at(k)
	circuit := at.Addrs[0].Encapsulate(ma.StringCast("/p2p/" + at.ID.String() + "/p2p-circuit"))
	if err := h.Connect(ctx, peer.AddrInfo{ID: to, Addrs: []ma.Multiaddr{circuit}}); err != nil {
		return nil, err
	}
	return h.NewStream(ctx, to, p)
}

// tries tries to reserve a place at edge k.
func (h *host) tries(k int) error {
	_, err := client.Reserve(await.Context(h.s.t), h, h.s.at(k))
	return err
}
