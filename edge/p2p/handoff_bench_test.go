package p2p_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/sidecar"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// BenchmarkHandoff hands 1 KiB to an HTTP agent that answers with as much: plainly, over a stream of libp2p alone, and
// by the protocol through its sidecar: directly, through the edge at which it has a place, and through another one.
func BenchmarkHandoff(b *testing.B) {
	s := open(b, setup{Options: agoratest.Options{Edges: 2}})
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/card" {
			_, _ = io.WriteString(w, `{"name":"plain","skills":[{"name":"echo","path":"/echo","method":"POST"}]}`)
			return
		}
		if body, err := io.ReadAll(r.Body); err == nil {
			_, _ = w.Write(body)
		}
	}))
	defer agent.Close()
	side, err := sidecar.New(sidecar.Config{
		Agent: agent.URL, Client: client.Config{URLs: s.URLs()[:1]},
		Peer: sidecar.Peer{Listen: "/ip4/127.0.0.1/tcp/0", Relays: s.door(0).Addresses()[:1]},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- side.Run(ctx) }()
	defer func() {
		stop()
		if err := await.Recv(b, "the sidecar ends", over); err != nil {
			b.Error(err)
		}
	}()
	await.True(b, "it has a place", func() bool { return s.door(0).Stats().Reservations.Load() == 1 && len(peersAt(b, s)) == 1 })
	at := peersAt(b, s)[0]
	id, err := peer.Decode(at.PeerID)
	if err != nil {
		b.Fatal(err)
	}
	input := `{"text":"` + strings.Repeat("x", 1000) + `"}`
	request := `{"method":"POST","path":"/echo","input_data":` + input + `}`
	b.Run("http", func(b *testing.B) {
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		timed(b, func() error {
			r, err := c.Post(agent.URL+"/echo", "application/json", strings.NewReader(input))
			if err != nil {
				return err
			}
			defer r.Body.Close()
			_, err = io.Copy(io.Discard, r.Body)
			return err
		})
	})
	b.Run("stream", func(b *testing.B) {
		from, to := s.enter(), s.listens()
		to.echoes()
		handsOver(b, from, to.ID(), to.Addrs(), echo, request)
	})
	var direct []ma.Multiaddr
	for _, text := range at.Addresses {
		if a := ma.StringCast(text); !strings.Contains(text, "p2p-circuit") && !strings.Contains(text, "/ws/") {
			plain, _ := peer.SplitAddr(a)
			direct = append(direct, plain)
		}
	}
	b.Run("direct", func(b *testing.B) { handsOver(b, s.enter(), id, direct, wire.HandoffProtocol, request) })
	for k, name := range []string{"edge", "edges=2"} {
		e := s.at(k)
		through := e.Addrs[0].Encapsulate(ma.StringCast("/p2p/" + e.ID.String() + "/p2p-circuit"))
		b.Run(name, func(b *testing.B) {
			handsOver(b, s.enter(), id, []ma.Multiaddr{through}, wire.HandoffProtocol, request)
		})
	}
}

// peersAt returns the peers that edge 0 lists.
func peersAt(b *testing.B, s *site) []listed {
	b.Helper()
	return s.peers(0, "?agent_name=plain")
}

// handsOver asks a peer over a new stream each time.
func handsOver(b *testing.B, from *host, to peer.ID, at []ma.Multiaddr, p protocol.ID, request string) {
	b.Helper()
	ctx := network.WithAllowLimitedConn(context.Background(), "bench")
	if err := from.Connect(ctx, peer.AddrInfo{ID: to, Addrs: at}); err != nil {
		b.Fatal(err)
	}
	timed(b, func() error {
		st, err := from.NewStream(ctx, to, p)
		if err != nil {
			return err
		}
		defer st.Close()
		if _, err := io.WriteString(st, request); err != nil {
			return err
		}
		if err := st.CloseWrite(); err != nil {
			return err
		}
		got, err := io.ReadAll(st)
		if err == nil && len(got) < 1000 {
			err = fmt.Errorf("%d bytes: answered %s", len(got), got)
		}
		return err
	})
}

// timed does something again and again, and tells the median of how long it took.
func timed(b *testing.B, do func() error) {
	b.Helper()
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	for k := range took {
		begun := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		took[k] = time.Since(begun)
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
}
