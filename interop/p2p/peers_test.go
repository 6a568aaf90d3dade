//go:build interop

package p2p

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// What all peers serve.
const (
	echo     = "/echo/1.0.0"
	card     = `{ "name": "%s", "skills": [{"name":"greet","path":"/greet/{name}","method":"POST"}] }`
	request  = `{"method":"POST","path":"/greet/{name}","params":{"name":"Ada"}}`
	answered = request + "\npiece 1\npiece 2\npiece 3\n"
)

// served is a peer that serves them: its id, and where it listens if it does.
type served struct {
	id      string
	tcp, ws string // whole multiaddresses
}

// caller is a peer that asks the one who is at a whole multiaddress.
type caller interface {
	card(t *testing.T, address string) string
	handsOff(t *testing.T, address, request string) string
	// echo has bytes said again that are written and read at once. It ends its own side behind them, or not.
	echo(t *testing.T, address string, bytes int, closes bool)
}

func (s script) card(t *testing.T, address string) string {
	t.Helper()
	return s.runs(t, "ask.mjs", address, "card")
}

func (s script) handsOff(t *testing.T, address, request string) string {
	t.Helper()
	return s.runs(t, "ask.mjs", address, "handoff", request)
}

func (s script) echo(t *testing.T, address string, bytes int, closes bool) {
	t.Helper()
	s.runs(t, "echo.mjs", address, strconv.Itoa(bytes), map[bool]string{true: "close", false: "open"}[closes])
}

// serves has a peer of js-libp2p listen at addresses until the test is over.
func (s script) serves(t *testing.T, listen ...string) served {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd, _, failed := s.command(ctx, "serve.mjs", listen...)
	cmd.Stdout = nil
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	stop := context.AfterFunc(await.Context(t), cancel) // it may never be ready
	lines.Scan()
	stop()
	words := strings.Fields(lines.Text())
	t.Cleanup(func() {
		in.Close() // which ends it
		ended := make(chan error, 1)
		var waiting sync.WaitGroup
		waiting.Go(func() { ended <- cmd.Wait() })
		defer waiting.Wait()
		defer cancel()
		if err := await.Recv(t, "serve.mjs ends", ended); err != nil || len(words) == 0 {
			t.Errorf("serve.mjs %s: %v\n%s", listen, err, failed)
		}
	})
	if len(words) < 2 || words[0] != "ready" {
		t.FailNow()
	}
	return servedAt(words[1], words[2:])
}

func servedAt(id string, addresses []string) served {
	s := served{id: id}
	for _, a := range addresses {
		switch {
		case strings.Contains(a, "/p2p-circuit"):
		case strings.Contains(a, "/ws"):
			s.ws = a
		default:
			s.tcp = a
		}
	}
	return s
}

// host is a peer of go-libp2p.
type host struct{ *p2phost.Host }

// enter makes one that listens at addresses, and ends with the test.
func enter(t *testing.T, listen ...ma.Multiaddr) host {
	t.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2phost.New(p2phost.Config{Key: key, Listen: listen, Reserves: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return host{h}
}

// serves has the peer serve what all do, and reserve places at edges.
func (h host) serves(t *testing.T, edges ...string) served {
	t.Helper()
	h.SetStreamHandler(echo, ending(func(s network.Stream) error {
		_, err := io.Copy(s, s)
		return err
	}))
	h.SetStreamHandler(wire.CardProtocol, ending(func(s network.Stream) error {
		_, err := fmt.Fprintf(s, card, "go")
		return err
	}))
	h.SetStreamHandler(wire.HandoffProtocol, ending(func(s network.Stream) error {
		q, err := wire.Read(s, 0)
		if err == nil {
			_, err = fmt.Fprintf(s, "%s\n", q.Append(nil))
		}
		for n := 1; n <= 3 && err == nil; n++ {
			_, err = fmt.Fprintf(s, "piece %d\n", n)
		}
		return err
	}))
	for _, e := range edges {
		if _, err := client.Reserve(await.Context(t), h, info(t, e)); err != nil {
			t.Fatal(err)
		}
	}
	return servedAt(h.ID().String(), p2phost.Whole(h))
}

// ending returns what handles a stream by f, and resets it where that fails.
func ending(f func(network.Stream) error) network.StreamHandler {
	return func(s network.Stream) {
		if f(s) != nil {
			_ = s.Reset()
			return
		}
		_ = s.Close()
	}
}

// info returns the peer at a whole multiaddress.
func info(t *testing.T, address string) peer.AddrInfo {
	t.Helper()
	at, err := peer.AddrInfoFromString(address)
	if err != nil {
		t.Fatal(err)
	}
	return *at
}

func (h host) opens(t *testing.T, address string, p protocol.ID) network.Stream {
	t.Helper()
	ctx := network.WithAllowLimitedConn(await.Context(t), "test")
	at := info(t, address)
	if err := h.Connect(ctx, at); err != nil {
		t.Fatalf("connect %s: %v", address, err)
	}
	s, err := h.NewStream(ctx, at.ID, p)
	if err != nil {
		t.Fatalf("%s at %s: %v", p, address, err)
	}
	return s
}

func (h host) asks(t *testing.T, s network.Stream, request string) string {
	t.Helper()
	if _, err := io.WriteString(s, request); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(s)
	if err != nil {
		t.Fatalf("%q and then %v", b, err)
	}
	return string(b)
}

func (h host) card(t *testing.T, address string) string {
	t.Helper()
	return h.asks(t, h.opens(t, address, wire.CardProtocol), "")
}

func (h host) handsOff(t *testing.T, address, request string) string {
	t.Helper()
	return h.asks(t, h.opens(t, address, wire.HandoffProtocol), request)
}

func (h host) echo(t *testing.T, address string, bytes int, closes bool) {
	t.Helper()
	s := h.opens(t, address, echo)
	defer s.Reset()
	said, heard := sha256.New(), sha256.New()
	var writes sync.WaitGroup
	defer writes.Wait()
	writes.Go(func() {
		_, err := io.Copy(s, io.TeeReader(io.LimitReader(rand.Reader, int64(bytes)), said))
		if err == nil && closes {
			err = s.CloseWrite()
		}
		if err != nil {
			t.Errorf("write: %v", err)
			_ = s.Reset()
		}
	})
	n, err := io.CopyN(heard, s, int64(bytes))
	if err != nil {
		t.Fatalf("%d bytes of %d and then %v", n, bytes, err)
	}
	if closes {
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("behind all comes %v, want the end", err)
		}
	}
	writes.Wait()
	if string(said.Sum(nil)) != string(heard.Sum(nil)) {
		t.Error("what comes back is not what was said")
	}
}
