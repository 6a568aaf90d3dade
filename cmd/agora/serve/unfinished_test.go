package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/wire/aip"
	"github.com/agora-relay/agora/wire/p2p"
)

// aliceToken is a token of the principal alice.
const aliceToken = "alices-token"

// guardedEdge is an edge with every port that asks for credentials, and how those reach it who have some.
type guardedEdge struct {
	*edgeServer
	at    map[string]string // its ports, by name
	trust *tls.Config       // nil where its ports have no TLS
	peer  *edgesPeer        // that is alice's by the word of its key
}

// guarded starts one.
func guarded(t *testing.T, more ...string) *guardedEdge {
	t.Helper()
	hash := sha256.Sum256([]byte(aliceToken))
	file := t.TempDir() + "/tokens"
	line := "alice sha256:" + hex.EncodeToString(hash[:]) + " agents=alice\n"
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &guardedEdge{edgeServer: alone(t, append([]string{"--auth", "file:" + file, "--p2p.connections", "16"}, more...)...)}
	e.at = e.portAddresses()
	return e
}

// guardedByTLS is guarded with TLS at every port that can have it.
func guardedByTLS(t *testing.T) *guardedEdge {
	t.Helper()
	c := servers.NewCertificates(t)
	e := guarded(t, "--tls.cert", c.ServerCert, "--tls.key", c.ServerKey, "--admin.tls.cert", c.ServerCert, "--admin.tls.key", c.ServerKey)
	b, err := os.ReadFile(c.CA)
	if err != nil {
		t.Fatal(err)
	}
	e.trust = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !e.trust.RootCAs.AppendCertsFromPEM(b) {
		t.Fatal("the CA has no certificate")
	}
	return e
}

// to returns the URL of a port, by the name of what it speaks.
func (e *guardedEdge) to(speaks, port, path string) string {
	if e.trust != nil {
		speaks += "s"
	}
	return speaks + "://" + e.at[port] + path
}

// unfinishedThing is what somebody without credentials begins at a port of an edge, and leaves so.
type unfinishedThing struct {
	port, about string
	says        string
	plain       bool // it is said to TCP, where the port has TLS: before the handshake
}

// unfinishedThings has what may be left unfinished at each port. A port that has none fails the test.
func unfinishedThings() (all []unfinishedThing) {
	const post, many = "POST /a2a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n", 15 << 10
	const opening = `{"header":{"msg_id":"`
	begun := opening + strings.Repeat("x", many)
	http1 := []unfinishedThing{
		{about: "silence"}, {about: "half a request line", says: "GET /ag"}, {about: "half a header", says: "GET /agents HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "},
		{about: "a large header", says: "GET /agents HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 30<<10)},
	}
	for _, port := range portsOfTLS {
		all = append(all,
			unfinishedThing{port, "silence of TCP", "", true}, unfinishedThing{port, "half the header of a TLS record", "\x16\x03", true},
			unfinishedThing{port, "half a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", true},
			unfinishedThing{port, "a TLS handshake that stands still", clientHello(), true},
		)
	}
	for _, port := range []string{"public", "admin"} {
		for _, u := range http1 {
			u.port = port
			all = append(all, u)
		}
	}
	const length = "Content-Length: 1000000\r\n\r\n"
	all = append(all,
		unfinishedThing{port: "public", about: "half a WebSocket handshake", says: "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"},
		unfinishedThing{port: "public", about: "a WebSocket without credentials", says: "GET /a2a/ws?agent=bob HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"},
		unfinishedThing{port: "public", about: "a body", says: post + length + begun}, unfinishedThing{port: "public", about: "no body", says: post + length},
		unfinishedThing{port: "public", about: "a body in chunks", says: post + "Transfer-Encoding: chunked\r\n\r\n3c00\r\n" + begun[:many]},
		unfinishedThing{port: "public", about: "a body that was asked for", says: post + "Expect: 100-continue\r\n" + length + begun},
		unfinishedThing{port: "public", about: "a body with a wrong token", says: post + length + `{"metadata":{"auth_token":"wrong"},"payload":"` + strings.Repeat("x", many)},
		unfinishedThing{port: "public", about: "a body with a wrong token in its header", says: post + "Authorization: Bearer wrong\r\n" + length + begun},
		unfinishedThing{port: "public", about: "a body at a path that takes none of strangers", says: "POST /agents/find HTTP/1.1\r\nHost: 127.0.0.1\r\n" + length + begun},
		unfinishedThing{port: "public", about: "HTTP/2 without streams", says: prefaced("", "", 0)},
		unfinishedThing{port: "public", about: "a body by HTTP/2", says: prefaced("/a2a", "", 15<<10)},
		unfinishedThing{port: "grpc", about: "silence", says: ""}, unfinishedThing{port: "grpc", about: "half a preface", says: http2.ClientPreface[:12]},
		unfinishedThing{port: "grpc", about: "no calls", says: prefaced("", "", 0)},
		unfinishedThing{port: "grpc", about: "half a message of a stranger", says: prefaced("/grpc.health.v1.Health/Check", "", 4<<10-100)},
		unfinishedThing{port: "grpc", about: "half a message, watching", says: prefaced("/grpc.health.v1.Health/Watch", "", 4<<10-100)},
		unfinishedThing{port: "grpc", about: "half a message without credentials", says: prefaced(aip.GatewayService_GetNodes_FullMethodName, "", 15<<10)},
		unfinishedThing{port: "grpc", about: "half a message with wrong credentials", says: prefaced(aip.GatewayService_GetNodes_FullMethodName, "wrong", 15<<10)},
		unfinishedThing{port: "p2p", about: "silence", says: ""}, unfinishedThing{port: "p2p", about: "half a multistream", says: "\x13/multistream"}, unfinishedThing{port: "p2p", about: "half a WebSocket handshake", says: "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"},
		unfinishedThing{port: "p2p", about: "a handshake that stands still", says: "\x13/multistream/1.0.0\n\x07/noise\n"},
	)
	return all
}

// portsOfTLS are those that can have TLS.
var portsOfTLS = []string{"public", "admin", "grpc"}

// clientHello is the whole first message of a handshake, whose answer is never read.
func clientHello() string {
	client, server := net.Pipe()
	defer client.Close()
	said := make(chan string, 1)
	go func() {
		b := make([]byte, 4<<10)
		n, _ := server.Read(b)
		server.Close()
		said <- string(b[:n])
	}()
	_ = tls.Client(client, &tls.Config{ServerName: "127.0.0.1"}).Handshake() // it is not answered
	return <-said
}

// prefaced is the beginning of a connection of HTTP/2, with a call whose message has so many bytes of more that it
// names; without a call where there is no path.
func prefaced(path, token string, has int) string {
	var b, block bytes.Buffer
	b.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&b, nil)
	_ = f.WriteSettings() // into memory, like all below
	if path == "" {
		return b.String()
	}
	head := hpack.NewEncoder(&block)
	fields := []string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "127.0.0.1", "content-type", "application/grpc", "te", "trailers"}
	if token != "" {
		fields = append(fields, "authorization", "Bearer "+token)
	}
	for k := 0; k < len(fields); k += 2 {
		_ = head.WriteField(hpack.HeaderField{Name: fields[k], Value: fields[k+1]})
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	message := append([]byte{0, 0, 0, 0x10, 0}, make([]byte, max(has-5, 0))...) // which says that it has 4 KiB
	for len(message) > 0 {
		n := min(len(message), 8<<10)
		_ = f.WriteData(1, false, message[:n])
		message = message[n:]
	}
	return b.String()
}

// ports returns where the ports of an edge are, by name.
func (e *edgeServer) portAddresses() map[string]string {
	at := map[string]string{"public": e.ports.public.addr(), "admin": e.ports.admin.addr()}
	if e.ports.grpc != nil {
		at["grpc"] = e.ports.grpc.Addr().String()
	}
	if e.doors.p2p != nil {
		parts := strings.Split(e.doors.p2p.Addresses()[0], "/") // /ip4/127.0.0.1/tcp/4001/p2p/…
		at["p2p"] = net.JoinHostPort(parts[2], parts[4])
	}
	return at
}

// honest is what somebody with credentials does at each door. A door that has nothing fails the test.
var honest = map[string]func(ctx context.Context, e *guardedEdge) error{
	"ws": func(ctx context.Context, e *guardedEdge) error {
		return e.opens(ctx, "/ws?agent_id=alice")
	},
	"http": func(ctx context.Context, e *guardedEdge) error {
		return e.asks(ctx, http.MethodGet, e.to("http", "public", "/agents"), "", http.StatusOK)
	},
	"iat": func(ctx context.Context, e *guardedEdge) error {
		said := fmt.Sprintf(`{"header":{"msg_id":"m%d","type":"notification","from":"alice","to":"nobody"},"metadata":{"auth_token":"%s"},"payload":{}}`, time.Now().UnixNano(), aliceToken)
		if err := e.asks(ctx, http.MethodPost, e.to("http", "public", "/a2a"), said, http.StatusNotFound); err != nil {
			return err
		}
		return e.opens(ctx, "/a2a/ws?agent=alice")
	},
	"aip": func(ctx context.Context, e *guardedEdge) error {
		security := insecure.NewCredentials()
		if e.trust != nil {
			security = credentials.NewTLS(e.trust.Clone())
		}
		c, err := grpc.NewClient(e.at["grpc"], grpc.WithTransportCredentials(security))
		if err != nil {
			return err
		}
		defer c.Close()
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+aliceToken)
		_, err = aip.NewGatewayServiceClient(c).GetNodes(ctx, new(aip.GetNodesRequest), grpc.WaitForReady(true))
		return err
	},
	"p2p": func(ctx context.Context, e *guardedEdge) error {
		for _, c := range e.peer.Network().ConnsToPeer(e.peer.at.ID) {
			_ = c.Close() // it comes again
		}
		if err := e.peer.Connect(ctx, e.peer.at); err != nil {
			return err
		}
		s, err := e.peer.NewStream(ctx, e.peer.at.ID, p2p.CardProtocol)
		if err != nil {
			return err
		}
		defer s.Reset()
		deadline, _ := ctx.Deadline()
		_ = s.SetDeadline(deadline) // what is over fails to be read
		if said, err := io.ReadAll(s); err != nil || !strings.Contains(string(said), `"agents"`) {
			return fmt.Errorf("answered %q, %w", said, err)
		}
		return nil
	},
}

// opens connects by WebSocket as alice, and goes again.
func (e *guardedEdge) opens(ctx context.Context, path string) error {
	d := websocket.Dialer{TLSClientConfig: e.trust}
	c, _, err := d.DialContext(ctx, e.to("ws", "public", path), http.Header{"Authorization": {"Bearer " + aliceToken}})
	if err != nil {
		return err
	}
	return c.Close()
}

// asks makes a request over a connection of its own; one without a body has its token in the header.
func (e *guardedEdge) asks(ctx context.Context, method, url, body string, want int) error {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body == "" {
		r.Header.Set("Authorization", "Bearer "+aliceToken)
	}
	t := &http.Transport{DisableKeepAlives: true, TLSClientConfig: e.trust}
	defer t.CloseIdleConnections()
	resp, err := (&http.Client{Transport: t}).Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("answered %d %s, want %d", resp.StatusCode, said, want)
	}
	return err
}

// crowd begins a thing many times at a port, as long as anybody takes it, and leaves it so until the test ends.
func (e *guardedEdge) crowd(t *testing.T, u unfinishedThing, many int) {
	for range many {
		c, err := net.DialTimeout("tcp", e.at[u.port], await.Long)
		if err != nil {
			t.Fatalf("%s: %s: %v", u.port, u.about, err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(await.Long))
		if e.trust != nil && !u.plain && slices.Contains(portsOfTLS, u.port) {
			cfg := e.trust.Clone()
			cfg.ServerName = "127.0.0.1"
			if cfg.NextProtos = []string{"http/1.1"}; u.port == "grpc" || strings.HasPrefix(u.says, http2.ClientPreface) {
				cfg.NextProtos = []string{"h2"}
			}
			c = tls.Client(c, cfg)
		}
		_, _ = io.WriteString(c, u.says) // it may be closed by now
	}
}

// narrow has few connections pending at each port, so that few fill them.
func (e *guardedEdge) narrow(places int) {
	for _, p := range []*admission.PendingConns{e.ports.public.listener, e.ports.admin.listener, e.ports.grpc.PendingConns} {
		p.Resize(places, 50*time.Millisecond)
	}
}

// serves has everybody with credentials served at every door, and returns how long the slowest of them waited.
func (e *guardedEdge) serves(t *testing.T, about string) (slowest time.Duration) {
	t.Helper()
	if e.peer == nil && e.doors.p2p != nil {
		e.peer = e.comes(t)
		e.peer.registers(e.to("http", "public", "/register"), e.trust, aliceToken, agora.DefaultTenant, "alice")
	}
	for _, d := range e.doors.all {
		do := honest[d.name()]
		if do == nil {
			t.Fatalf("door %s: nobody with credentials comes to it: add to honest what they do", d.name())
		}
		begun := time.Now()
		if err := do(await.Context(t), e); err != nil {
			t.Errorf("%s: door %s: %v", about, d.name(), err)
		}
		slowest = max(slowest, time.Since(begun))
	}
	if err := e.asks(await.Context(t), http.MethodGet, e.to("http", "admin", "/healthz"), "", http.StatusOK); err != nil {
		t.Errorf("%s: admin: %v", about, err)
	}
	return slowest
}

// TestWhatIsUnfinishedKeepsNobodyOut begins everything that somebody without credentials can begin at each port, more
// often than the port has places, and has the one who has credentials served at every door meanwhile.
func TestWhatIsUnfinishedKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	for about, guards := range map[string]func(*testing.T) *guardedEdge{
		"plain": func(t *testing.T) *guardedEdge { return guarded(t) }, "TLS": guardedByTLS,
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			e := guards(t)
			e.serves(t, "nothing yet")
			e.narrow(16)
			rows := map[string]int{}
			for _, u := range unfinishedThings() {
				rows[u.port]++
				e.crowd(t, u, 20)
				e.serves(t, u.port+": "+u.about)
			}
			for port := range e.at {
				if rows[port] < 2 {
					t.Errorf("port %s has %d rows: say in unfinishedThings what may be left unfinished there", port, rows[port])
				}
			}
			e.holdsLittle(t)
		})
	}
}

// holdsLittle wants strangers to hold no more than they may.
func (e *guardedEdge) holdsLittle(t *testing.T) {
	t.Helper()
	strangers := e.node.Shedder().Strangers()
	if bytes, _, _ := strangers.Limits(); strangers.Held() > bytes {
		t.Errorf("strangers hold %d bytes, want %d at most", strangers.Held(), bytes)
	}
	if n := e.ports.public.listener.Pending(); n > 16 {
		t.Errorf("%d connections are pending, want 16 at most", n)
	}
}

// unfinishedByPeers is what a peer that is bound to nobody begins to say by each protocol. A protocol that an edge
// offers, and that is missing here, fails the test.
var unfinishedByPeers = map[protocol.ID]string{
	p2p.CardProtocol:    strings.Repeat("x", 1<<20),
	p2p.HandoffProtocol: `{"method":"GET","path":"/a","input_data":"` + strings.Repeat("x", 1<<20),
	proto.ProtoIDv2Hop:  "\xff\x1f" + strings.Repeat("x", 4000),
	identify.ID:         "x",
	identify.IDPush:     "\xff\x3f" + strings.Repeat("x", 8000),
	ping.ID:             strings.Repeat("x", 31),
}

// TestPeersThatAreBoundToNobodyKeepNobodyOut has more of them come than there are places, be silent and begin what they
// don't end, and has the one who has credentials served at every door meanwhile.
func TestPeersThatAreBoundToNobodyKeepNobodyOut(t *testing.T) {
	t.Parallel()
	e := guarded(t)
	e.serves(t, "nothing yet")
	offered, err := e.peer.Peerstore().GetProtocols(e.peer.at.ID)
	if err != nil || len(offered) < 5 {
		t.Fatalf("the edge offers %q, %v", offered, err)
	}
	var peers []*edgesPeer
	for range 20 {
		peers = append(peers, e.comes(t))
	}
	e.serves(t, "idle peers")
	for _, of := range offered {
		says, has := unfinishedByPeers[of]
		if !has {
			t.Errorf("say in unfinishedByPeers what may be left unfinished by %s", of)
		}
		var writes sync.WaitGroup
		var streams []network.Stream
		for _, p := range peers {
			_ = p.Connect(await.Context(t), p.at) // it may have had to make room, and may have to again
			for range 8 {
				s, err := p.NewStream(network.WithNoDial(await.Context(t), "it has no place"), p.at.ID, of)
				if err != nil {
					break
				}
				streams = append(streams, s)
				writes.Go(func() { _, _ = io.WriteString(s, says) }) // as much as goes in
			}
		}
		if len(streams) == 0 {
			t.Errorf("nobody has begun anything by %s", of)
		}
		e.serves(t, string(of))
		for _, s := range streams {
			_ = s.Reset()
		}
		writes.Wait()
	}
	e.holdsLittle(t)
}
