package p2phost_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
)

func newHost(t *testing.T, listen ...ma.Multiaddr) *p2phost.Host {
	t.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2phost.New(p2phost.Config{Key: key, Listen: listen})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestWhatWasWrittenBeforeAHostClosesArrives(t *testing.T) {
	t.Parallel()
	answer := bytes.Repeat([]byte("a"), 100_000) // less than half a stream's window, so that neither end waits for the other
	for range 20 {
		server, caller := newHost(t, ma.StringCast("/ip4/127.0.0.1/tcp/0")), newHost(t)
		written := make(chan struct{})
		server.SetStreamHandler("/flush/1", func(s network.Stream) {
			p2phost.Finish(s, answer, time.Minute)
			close(written)
		})
		ctx := await.Context(t)
		if err := caller.Connect(ctx, peer.AddrInfo{ID: server.ID(), Addrs: server.Addrs()}); err != nil {
			t.Fatal(err)
		}
		s, err := caller.NewStream(ctx, server.ID(), "/flush/1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("ask")); err != nil {
			t.Fatal(err)
		}
		await.Recv(t, "the answer is written", written)
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(s); !bytes.Equal(got, answer) {
			t.Fatalf("%d bytes of %d have arrived: %v", len(got), len(answer), err)
		}
		if err := caller.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
