package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire/aip"
)

// aliceToken is a token of the principal alice.
const aliceToken = "alices-token"

// guarded starts an edge with every port that asks for credentials.
func guarded(t *testing.T) *edgeServer {
	t.Helper()
	hash := sha256.Sum256([]byte(aliceToken))
	file := t.TempDir() + "/tokens"
	line := "alice sha256:" + hex.EncodeToString(hash[:]) + " agents=alice\n"
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return alone(t, "--auth", "file:"+file)
}

// unfinishedThing is what somebody without credentials begins at a port of an edge, and leaves so.
type unfinishedThing struct {
	port, about string
	says        string
}

// unfinishedThings has what may be left unfinished at each port. A port that has none fails the test.
func unfinishedThings() (all []unfinishedThing) {
	const post, many = "POST /a2a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n", 15 << 10
	const opening = `{"header":{"msg_id":"`
	begun := opening + strings.Repeat("x", many)
	http1 := []unfinishedThing{
		{"", "silence", ""}, {"", "half a request line", "GET /ag"}, {"", "half a header", "GET /agents HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "},
		{"", "a large header", "GET /agents HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 30<<10)},
		{"", "half a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
	}
	for _, port := range []string{"public", "admin"} {
		for _, u := range http1 {
			u.port = port
			all = append(all, u)
		}
	}
	const length = "Content-Length: 1000000\r\n\r\n"
	all = append(all,
		unfinishedThing{"public", "half a WebSocket handshake", "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"},
		unfinishedThing{"public", "a WebSocket without credentials", "GET /a2a/ws?agent=bob HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"},
		unfinishedThing{"public", "a body", post + length + begun}, unfinishedThing{"public", "no body", post + length},
		unfinishedThing{"public", "a body in chunks", post + "Transfer-Encoding: chunked\r\n\r\n3c00\r\n" + begun[:many]},
		unfinishedThing{"public", "a body that was asked for", post + "Expect: 100-continue\r\n" + length + begun},
		unfinishedThing{"public", "a body with a wrong token", post + length + `{"metadata":{"auth_token":"wrong"},"payload":"` + strings.Repeat("x", many)},
		unfinishedThing{"public", "a body with a wrong token in its header", post + "Authorization: Bearer wrong\r\n" + length + begun},
		unfinishedThing{"public", "a body at a path that takes none of strangers", "POST /agents/find HTTP/1.1\r\nHost: 127.0.0.1\r\n" + length + begun},
		unfinishedThing{"public", "HTTP/2 without streams", prefaced("", "", 0)},
		unfinishedThing{"public", "a body by HTTP/2", prefaced("/a2a", "", 15<<10)},
		unfinishedThing{"grpc", "silence", ""}, unfinishedThing{"grpc", "half a preface", http2.ClientPreface[:12]},
		unfinishedThing{"grpc", "no calls", prefaced("", "", 0)},
		unfinishedThing{"grpc", "half a message of a stranger", prefaced("/grpc.health.v1.Health/Check", "", 4<<10-100)},
		unfinishedThing{"grpc", "half a message, watching", prefaced("/grpc.health.v1.Health/Watch", "", 4<<10-100)},
		unfinishedThing{"grpc", "half a message without credentials", prefaced(aip.GatewayService_GetNodes_FullMethodName, "", 15<<10)},
		unfinishedThing{"grpc", "half a message with wrong credentials", prefaced(aip.GatewayService_GetNodes_FullMethodName, "wrong", 15<<10)},
		unfinishedThing{"p2p", "silence", ""}, unfinishedThing{"p2p", "half a multistream", "\x13/multistream"}, unfinishedThing{"p2p", "half a WebSocket handshake", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"},
		unfinishedThing{"p2p", "a handshake that stands still", "\x13/multistream/1.0.0\n\x07/noise\n"},
	)
	return all
}

// prefaced is the beginning of a connection of HTTP/2, with a call whose message has so many bytes of more that it names; without a call where there is no path.
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
var honest = map[string]func(ctx context.Context, at map[string]string) error{
	"ws": func(ctx context.Context, at map[string]string) error {
		return opens(ctx, "ws://"+at["public"]+"/ws?agent_id=alice")
	},
	"http": func(ctx context.Context, at map[string]string) error {
		return asks(ctx, http.MethodGet, "http://"+at["public"]+"/agents", "", http.StatusOK)
	},
	"iat": func(ctx context.Context, at map[string]string) error {
		e := fmt.Sprintf(`{"header":{"msg_id":"m%d","type":"notification","from":"alice","to":"nobody"},"metadata":{"auth_token":"%s"},"payload":{}}`, time.Now().UnixNano(), aliceToken)
		if err := asks(ctx, http.MethodPost, "http://"+at["public"]+"/a2a", e, http.StatusNotFound); err != nil {
			return err
		}
		return opens(ctx, "ws://"+at["public"]+"/a2a/ws?agent=alice")
	},
	"aip": func(ctx context.Context, at map[string]string) error {
		c, err := grpc.NewClient(at["grpc"], grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer c.Close()
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+aliceToken)
		_, err = aip.NewGatewayServiceClient(c).GetNodes(ctx, new(aip.GetNodesRequest), grpc.WaitForReady(true))
		return err
	},
	"p2p": func(ctx context.Context, at map[string]string) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", at["p2p"])
		if err != nil {
			return err
		}
		defer c.Close()
		deadline, _ := ctx.Deadline()
		c.SetDeadline(deadline)
		const hello = "\x13/multistream/1.0.0\n"
		if _, err := io.WriteString(c, hello); err != nil {
			return err
		}
		said := make([]byte, len(hello))
		if _, err := io.ReadFull(c, said); err != nil || string(said) != hello {
			return fmt.Errorf("answered %q, %w", said, err)
		}
		return nil
	},
}

// opens connects by WebSocket as alice, and goes again.
func opens(ctx context.Context, url string) error {
	c, _, err := websocket.DefaultDialer.DialContext(ctx, url, http.Header{"Authorization": {"Bearer " + aliceToken}})
	if err != nil {
		return err
	}
	return c.Close()
}

// asks makes a request over a connection of its own; one without a body has its token in the header.
func asks(ctx context.Context, method, url, body string, want int) error {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body == "" {
		r.Header.Set("Authorization", "Bearer "+aliceToken)
	}
	t := &http.Transport{DisableKeepAlives: true}
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
func (u unfinishedThing) crowd(t *testing.T, at string, many int) {
	for range many {
		c, err := net.DialTimeout("tcp", at, await.Long)
		if err != nil {
			t.Fatalf("%s: %s: %v", u.port, u.about, err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetWriteDeadline(time.Now().Add(await.Long))
		_, _ = io.WriteString(c, u.says) // it may be closed by now
	}
}

// narrow has few connections pending at each port, so that few fill them.
func (e *edgeServer) narrow(places int) {
	for _, p := range []*admission.PendingConns{e.ports.public.listener, e.ports.admin.listener, e.ports.grpc.PendingConns} {
		p.Resize(places, 50*time.Millisecond)
	}
}

// serves has everybody with credentials served at every door, and returns how long the slowest of them waited.
func (e *edgeServer) serves(t *testing.T, about string) (slowest time.Duration) {
	t.Helper()
	at := e.portAddresses()
	for _, d := range e.doors.all {
		do := honest[d.name()]
		if do == nil {
			t.Fatalf("door %s: nobody with credentials comes to it: add to honest what they do", d.name())
		}
		begun := time.Now()
		if err := do(await.Context(t), at); err != nil {
			t.Errorf("%s: door %s: %v", about, d.name(), err)
		}
		slowest = max(slowest, time.Since(begun))
	}
	if err := asks(await.Context(t), http.MethodGet, "http://"+at["admin"]+"/healthz", "", http.StatusOK); err != nil {
		t.Errorf("%s: admin: %v", about, err)
	}
	return slowest
}

// TestWhatIsUnfinishedKeepsNobodyOut begins everything that somebody without credentials can begin at each port, more often than the port has places, and has whoever has credentials
// served at every door meanwhile.
func TestWhatIsUnfinishedKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	e := guarded(t)
	e.narrow(16)
	at, rows := e.portAddresses(), map[string]int{}
	for _, u := range unfinishedThings() {
		rows[u.port]++
		u.crowd(t, at[u.port], 20)
		e.serves(t, u.port+": "+u.about)
	}
	for port := range at {
		if rows[port] < 2 {
			t.Errorf("port %s has %d rows: say in unfinishedThings what may be left unfinished there", port, rows[port])
		}
	}
	strangers := e.node.Shedder().Strangers()
	if bytes, _, _ := strangers.Limits(); strangers.Held() > bytes {
		t.Errorf("strangers hold %d bytes, want %d at most", strangers.Held(), bytes)
	}
	if n := e.ports.public.listener.Pending(); n > 16 {
		t.Errorf("%d connections are pending, want 16 at most", n)
	}
}
