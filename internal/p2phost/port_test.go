package p2phost

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/origin"
)

// begin makes a host that ends with the test.
func begin(t *testing.T, cfg Config) *Host {
	t.Helper()
	var err error
	if cfg.Key, err = NewKey(); err != nil {
		t.Fatal(err)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// listens makes a host that listens on loopback.
func listens(t *testing.T, cfg Config) *Host {
	t.Helper()
	cfg.Listen = []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/tcp/0")}
	return begin(t, cfg)
}

// address returns where a host listens.
func address(t *testing.T, h *Host) string {
	t.Helper()
	_, at, err := manet.DialArgs(h.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// upgrade asks for a WebSocket with headers, and returns the status of the answer.
func upgrade(t *testing.T, at, host string, headers ...string) int {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := append([]string{"GET / HTTP/1.1", "Host: " + host, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}, headers...)
	if _, err := io.WriteString(c, strings.Join(all, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	return r.StatusCode
}

func TestAPageSpeaksLibp2pOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	const own, evil = "HOST", "http://evil.example"
	for _, c := range []struct {
		name    string
		pages   origin.Policy
		host    string
		headers []string
		want    int
	}{
		{"a program", origin.Policy{}, own, nil, 101},
		{"another page", origin.Policy{}, own, []string{"Origin: " + evil}, 403},
		{"another page without a host of its own", origin.Policy{}, own, []string{"Origin: null"}, 403},
		{"the same host", origin.Policy{}, own, []string{"Origin: http://HOST"}, 101},
		{"a page that is listed", origin.Policy{Listed: []string{evil}}, own, []string{"Origin: " + evil}, 101},
		{"a page says so without an origin", origin.Policy{}, own, []string{"Sec-Fetch-Site: cross-site"}, 403},
		{"two origins", origin.Policy{}, own, []string{"Origin: http://HOST", "Origin: " + evil}, 400},
		{"for development, another page", origin.Policy{Loopback: true}, own, []string{"Origin: " + evil}, 403},
		{"for development, a name that points here", origin.Policy{Loopback: true}, "evil.example", nil, 403},
		{"for development, a page of it", origin.Policy{Loopback: true}, "evil.example", []string{"Origin: " + evil}, 403},
		{"for development, a page of this machine", origin.Policy{Loopback: true}, own, []string{"Origin: http://localhost:3000"}, 101},
		{"none, the same host", origin.Policy{Closed: true}, own, []string{"Origin: http://HOST"}, 403},
		{"none, a program", origin.Policy{Closed: true}, own, nil, 101},
		{"a large header", origin.Policy{}, own, []string{"X: " + strings.Repeat("x", 9<<10)}, 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := address(t, listens(t, Config{Pages: c.pages}))
			for k, h := range c.headers {
				c.headers[k] = strings.ReplaceAll(h, own, at)
			}
			if got := upgrade(t, at, strings.ReplaceAll(c.host, own, at), c.headers...); got != c.want {
				t.Errorf("the answer is %d, want %d", got, c.want)
			}
		})
	}
}

// Both ways to speak to a port lead to the host, and what a peer leaves unread counts until its stream is over.
func TestWhatNobodyReadsCounts(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"", "/ws"} {
		a := new(tally)
		server := listens(t, Config{Admitter: a})
		got := make(chan network.Stream, 8)
		server.SetStreamHandler("/held/1", func(s network.Stream) { got <- s })
		caller := begin(t, Config{})
		at := ma.StringCast(fmt.Sprintf("/ip4/127.0.0.1/tcp/%s%s", address(t, server)[strings.LastIndex(address(t, server), ":")+1:], way))
		ctx := await.Context(t)
		if err := caller.Connect(ctx, peer.AddrInfo{ID: server.ID(), Addrs: []ma.Multiaddr{at}}); err != nil {
			t.Fatal(err)
		}
		quiet := a.held.Load // identify is read
		await.True(t, "all is read", func() bool { return quiet() == 0 })
		const each = 100_000
		var all []network.Stream
		for range 3 {
			s, err := caller.NewStream(ctx, server.ID(), "/held/1")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Write(bytes.Repeat([]byte("x"), each)); err != nil {
				t.Fatal(err)
			}
			all = append(all, await.Recv(t, "the stream comes", got))
		}
		await.True(t, "all of it counts", func() bool { return a.held.Load() == 3*each })
		if _, err := io.CopyN(io.Discard, all[0], each/2); err != nil {
			t.Fatal(err)
		}
		if held := a.held.Load(); held != 3*each-each/2 {
			t.Errorf("%d bytes count, want %d: some were read", held, 3*each-each/2)
		}
		_ = all[0].Reset()
		_ = all[1].Close()
		if held := a.held.Load(); held != each {
			t.Errorf("%d bytes count, want %d: two streams are over", held, each)
		}
		if err := caller.Network().ClosePeer(server.ID()); err != nil {
			t.Fatal(err)
		}
		await.True(t, "the connection is released, and nothing is open", func() bool {
			_ = all[2].Reset()
			return a.released.Load() == 1 && a.held.Load() == 0 && a.open.Load() == 0
		})
	}
}

func TestStreamsBeyondWhatAPeerMayHaveAreReset(t *testing.T) {
	t.Parallel()
	a := &tally{streams: 4}
	server := listens(t, Config{Admitter: a})
	server.SetStreamHandler("/held/1", func(s network.Stream) { _, _ = s.Write([]byte("x")) })
	caller := begin(t, Config{})
	if err := caller.Connect(await.Context(t), peer.AddrInfo{ID: server.ID(), Addrs: server.Addrs()}); err != nil {
		t.Fatal(err)
	}
	opened := func() bool {
		s, err := caller.NewStream(await.Context(t), server.ID(), "/held/1")
		if err != nil {
			return false
		}
		_, err = s.Read(make([]byte, 1))
		return err == nil
	}
	await.True(t, "one is refused", func() bool { return !opened() })
	if n := a.open.Load(); n > 4 {
		t.Errorf("%d are open", n)
	}
}

// Hosts whose makers bring no listener bound those that say nothing as well.
func TestTheConnectionThatIsPendingLongestMakesRoom(t *testing.T) {
	t.Parallel()
	server, caller := listens(t, Config{}), begin(t, Config{})
	first, err := net.Dial("tcp", address(t, server))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for range mostPending {
		c, err := net.Dial("tcp", address(t, server))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("the first one is told something")
	}
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	if err := caller.Connect(ctx, peer.AddrInfo{ID: server.ID(), Addrs: server.Addrs()}); err != nil {
		t.Errorf("who speaks is not let in: %v", err)
	}
}
