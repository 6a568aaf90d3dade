package sidecar_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/sidecar"
)

// counter counts reservations, and what renews one.
type counter struct{ all, renewals atomic.Int32 }

func (c *counter) ReservationAllowed(renewal bool) {
	c.all.Add(1)
	if renewal {
		c.renewals.Add(1)
	}
}
func (*counter) RelayStatus(bool)                      {}
func (*counter) ConnectionOpened()                     {}
func (*counter) ConnectionClosed(time.Duration)        {}
func (*counter) ConnectionRequestHandled(pb.Status)    {}
func (*counter) ReservationClosed(int)                 {}
func (*counter) ReservationRequestHandled(s pb.Status) {}
func (*counter) BytesTransferred(int)                  {}

// relays starts a relay that is no edge, whose reservations last so long, and returns its address and host.
func (s *site) relays(lasts time.Duration, listen string, c *counter) (string, *p2phost.Host) {
	s.t.Helper()
	key, err := p2phost.KeyIn(s.t.TempDir() + "/key")
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := p2phost.New(p2phost.Config{Key: key, Listen: []ma.Multiaddr{ma.StringCast(listen)}})
	if err != nil {
		s.t.Fatal(err)
	}
	resources := relay.DefaultResources()
	resources.ReservationTTL = lasts
	r, err := relay.New(h, relay.WithResources(resources), relay.WithMetricsTracer(c))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		r.Close()
		h.Close()
	})
	return p2phost.Whole(h)[0], h
}

func TestAPlaceAtARelayIsRenewedBeforeItIsOver(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	var c counter
	at, _ := s.relays(4*time.Second, "/ip4/127.0.0.1/tcp/0", &c)
	s.run(p, func(c *sidecar.Config) { c.Peer.Listen, c.Peer.Relays = "none", []string{at} })
	await.True(t, "it is renewed, and renewed again", func() bool { return c.renewals.Load() >= 2 })
	if got := c.all.Load() - c.renewals.Load(); got != 1 {
		t.Errorf("it was reserved %d times, want once", got)
	}
}

func TestAPlaceAtARelayIsReservedAgainAfterTheRelayHasLostIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	var c counter
	at, h := s.relays(time.Hour, "/ip4/127.0.0.1/tcp/0", &c)
	s.run(p, func(c *sidecar.Config) { c.Peer.Listen, c.Peer.Relays = "none", []string{at} })
	await.True(t, "there is a place", func() bool { return slices.ContainsFunc(s.registered().Addresses, relayed) })
	for n := range int32(3) {
		await.True(t, "it was reserved anew", func() bool { return c.all.Load() > n })
		for _, conn := range h.Network().Conns() {
			conn.Close()
		}
	}
	await.True(t, "it is reserved anew at last", func() bool { return c.all.Load() > 3 })
}

func TestEdgesThatComeAreRelaysAndThoseThatGoAreNot(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, nil)
	told := func(k int) bool {
		id := s.door(k).ID().String()
		return slices.ContainsFunc(s.registered().Addresses, func(a string) bool { return relayed(a) && strings.Contains(a, id) })
	}
	await.True(t, "there is a place at the first edge", func() bool { return told(0) })
	k := s.AddEdge()
	await.True(t, "there is a place at the new edge", func() bool { return told(k) })
	s.StopEdge(k)
	await.True(t, "there is none at the edge that has gone", func() bool { return !told(k) && told(0) })
}

func TestOnlyHalfOfWhatTheAgentIsAskedForIsOfPeers(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	p := newPlain(t)
	s.run(p, func(c *sidecar.Config) { c.Limits.Concurrent = 2 })
	c := s.calls(direct)
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	for range 3 {
		stream := c.opens("/ai-agent/handoff/1.0.0")
		if _, err := stream.Write([]byte(`{"method":"POST","path":"/slow"}`)); err != nil {
			t.Fatal(err)
		}
		defer context.AfterFunc(ctx, func() { _ = stream.Reset() })()
	}
	await.Recv(t, "one of a peer is in progress", p.held)
	if payload, _, err := asks(t, s.dial("anna"), `{"action":"handoff","method":"POST","path":"/greet/x"}`); err != nil || !strings.Contains(payload, `"hello":"x"`) {
		t.Errorf("a request by mail: %s %v", payload, err)
	}
	if len(p.held) > 0 {
		t.Error("more than one of a peer is in progress")
	}
}
