package p2p_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	library "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/p2phost"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// alone is a host that is nothing but the library's relay.
func alone(b *testing.B) peer.AddrInfo {
	b.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		b.Fatal(err)
	}
	h, err := p2phost.New(p2phost.Config{Key: key, Listen: []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/tcp/0")}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	r, err := library.New(h, library.WithInfiniteLimits(), library.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true }))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Close() })
	return peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}
}

// between opens a stream of a protocol from one new peer to another one, which has reserved a place at a relay, through
// a relay.
func between(b *testing.B, s *site, at, through peer.AddrInfo, serves func(network.Stream)) func() network.Stream {
	b.Helper()
	to, from := s.enter(), s.enter()
	to.SetStreamHandler(echo, serves)
	ctx := network.WithAllowLimitedConn(context.Background(), "bench")
	if at.ID != "" {
		if _, err := client.Reserve(ctx, to, at); err != nil {
			b.Fatal(err)
		}
	}
	info := peer.AddrInfo{ID: to.ID(), Addrs: []ma.Multiaddr{through.Addrs[0].Encapsulate(ma.StringCast("/p2p/" + through.ID.String() + "/p2p-circuit"))}}
	if err := from.Connect(ctx, info); err != nil {
		b.Fatal(err)
	}
	return func() network.Stream {
		st, err := from.NewStream(ctx, to.ID(), echo)
		if err != nil {
			b.Fatal(err)
		}
		return st
	}
}

// ways are those from one peer to another: by the library's relay alone, by one edge, and by two.
func ways(b *testing.B, s *site, f func(b *testing.B, at, through peer.AddrInfo)) {
	lib := alone(b)
	b.Run("library", func(b *testing.B) { f(b, lib, lib) })
	b.Run("edge", func(b *testing.B) { f(b, s.at(0), s.at(0)) })
	b.Run("edges=2", func(b *testing.B) { f(b, s.at(0), s.at(1)) })
}

// BenchmarkRelay pours 1 MiB at a time through a circuit.
func BenchmarkRelay(b *testing.B) {
	s := open(b, setup{Options: agoratest.Options{Edges: 2}, door: p2p.Config{Relay: p2p.Relay{Data: 1 << 50}}})
	ways(b, s, func(b *testing.B, at, through peer.AddrInfo) {
		got := make(chan int64, 1)
		opens := between(b, s, at, through, func(st network.Stream) {
			n, _ := io.Copy(io.Discard, st)
			got <- n
			_ = st.Close()
		})
		st, piece := opens(), make([]byte, 1<<20)
		b.SetBytes(1 << 20)
		b.ResetTimer()
		for range b.N {
			if _, err := st.Write(piece); err != nil {
				b.Fatal(err)
			}
		}
		_ = st.CloseWrite()
		if n := <-got; n != int64(b.N)<<20 {
			b.Fatalf("%d bytes came, want %d", n, int64(b.N)<<20)
		}
	})
}

// BenchmarkAsked asks for 1 KiB over a new stream of a circuit.
func BenchmarkAsked(b *testing.B) {
	s := open(b, setup{Options: agoratest.Options{Edges: 2}, door: p2p.Config{Relay: p2p.Relay{Data: 1 << 50}}})
	ways(b, s, func(b *testing.B, at, through peer.AddrInfo) {
		opens := between(b, s, at, through, func(st network.Stream) {
			_, _ = io.Copy(st, st)
			_ = st.Close()
		})
		text := bytes.Repeat([]byte("x"), 1<<10)
		b.ResetTimer()
		for range b.N {
			st := opens()
			if _, err := st.Write(text); err != nil {
				b.Fatal(err)
			}
			_ = st.CloseWrite()
			if got, err := io.ReadAll(st); err != nil || len(got) != len(text) {
				b.Fatal(len(got), err)
			}
			_ = st.Close()
		}
	})
}

// BenchmarkCardOfAnAgent asks for the card of an agent of another dialect: with a new peer's connection to the edge and
// circuit each time.
func BenchmarkCardOfAnAgent(b *testing.B) {
	s := open(b, setup{Options: agoratest.Options{Edges: 2}, door: p2p.Config{ClusterKey: []byte("0123456789abcdef0123456789abcdef")}})
	s.agent(1, "bob", `,"skills":["greet"]`)
	var all []struct {
		PeerID string `json:"peer_id"`
	}
	for len(all) == 0 {
		_, text := s.gets(0, "/peers")
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			b.Fatal(err)
		}
	}
	id, err := peer.Decode(all[0].PeerID)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		h := s.enter()
		b.StartTimer()
		st, err := h.opens(0, id, wire.CardProtocol)
		if err != nil {
			b.Fatal(err)
		}
		_ = st.CloseWrite()
		if got, err := io.ReadAll(st); err != nil || !bytes.Contains(got, []byte(`"bob"`)) {
			b.Fatalf("%s, %v", got, err)
		}
		b.StopTimer()
		_ = h.Close()
		b.StartTimer()
	}
}
