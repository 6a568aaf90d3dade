package ws

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/await"
)

// knock opens a connection and returns the status of the answer, and when it says to try again.
func knock(t *testing.T, url string, h http.Header) (c *websocket.Conn, status int, retry string) {
	t.Helper()
	c, r, err := websocket.DefaultDialer.Dial(url, h)
	if r == nil {
		t.Fatal(err)
	}
	if c != nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, r.StatusCode, r.Header.Get("Retry-After")
}

// Browsers and some libraries close a connection whose server does not answer to the subprotocol that they offer.
func TestASubprotocolThatIsOfferedIsAnswered(t *testing.T) {
	_, s := serve(t, Config{}, node{})
	for offered, want := range map[string]string{"": "", "agora": "agora", "graphql-ws, agora": "agora", "graphql-ws": ""} {
		h := http.Header{}
		if offered != "" {
			h.Set("Sec-WebSocket-Protocol", offered)
		}
		c, status, _ := knock(t, address(s), h)
		if status != http.StatusSwitchingProtocols || c.Subprotocol() != want {
			t.Errorf("%q is offered: %d with %q, want %q", offered, status, c.Subprotocol(), want)
		}
	}
}

// A client may write its first frame right behind its handshake.
func TestAFrameThatComesWithTheHandshakeIsServed(t *testing.T) {
	_, s := serve(t, Config{}, node{})
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	said := `{"type":"nothing","id":"early"}`
	fmt.Fprintf(c, "GET /ws?token=%s HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81%s\x00\x00\x00\x00%s", goodToken, string([]byte{0x80 | byte(len(said))}), said)
	r := bufio.NewReader(c)
	for !strings.Contains(string(peek(r)), `"request_id":"early"`) {
		if _, err := r.ReadByte(); err != nil {
			t.Fatalf("no answer to the frame: %v", err)
		}
	}
}

// peek returns what has come; it waits for a byte at least.
func peek(r *bufio.Reader) []byte {
	r.Peek(1)
	b, _ := r.Peek(r.Buffered())
	return b
}

func TestWhoComesTooOftenIsToldWhenToComeBackBeforeTheUpgrade(t *testing.T) {
	d, s := serve(t, Config{}, node{admit: gated(admission.Limits{HandshakesPerIP: 0.01, Burst: 200}).Admit})
	for range 2 {
		if _, status, _ := knock(t, address(s), nil); status != http.StatusSwitchingProtocols {
			t.Fatalf("answered %d, want 101", status)
		}
	}
	_, status, retry := knock(t, address(s), nil)
	if n, err := strconv.Atoi(retry); status != http.StatusTooManyRequests || err != nil || n < 1 {
		t.Errorf("answered %d, Retry-After %q, want 429 and seconds", status, retry)
	}
	if n := d.Stats().Refused.Load(); n != 1 {
		t.Errorf("%d refused, want 1", n)
	}
}

func TestConnectionsFromOneAddressAreCountedUntilTheyEnd(t *testing.T) {
	_, s := serve(t, Config{}, node{admit: gated(admission.Limits{PerIP: 2}).Admit})
	first, _, _ := knock(t, address(s), nil)
	knock(t, address(s), nil)
	if _, status, retry := knock(t, address(s), nil); status != http.StatusTooManyRequests || retry == "" {
		t.Errorf("the third: %d, Retry-After %q, want 429", status, retry)
	}
	for range 20 { // who is refused later is not counted either
		s, _, _ := knock(t, "ws"+s.URL[4:]+"/ws?token=wrong", nil)
		if s != nil {
			t.Fatal("a wrong token was let in")
		}
	}
	first.Close()
	await.True(t, "there is room again", func() bool {
		c, status, _ := knock(t, address(s), nil)
		return c != nil && status == http.StatusSwitchingProtocols
	})
}

func TestAForwardedAddressCountsFromTrustedProxiesAlone(t *testing.T) {
	trusted := new(edge.Proxies)
	_, s := serve(t, Config{}, node{admit: gated(admission.Limits{PerIP: 1}).Admit, proxies: trusted})
	from := func(client string) int {
		_, status, _ := knock(t, address(s), http.Header{"X-Forwarded-For": {client}})
		return status
	}
	if status := from("192.0.2.1"); status != http.StatusSwitchingProtocols {
		t.Fatalf("the first: %d", status)
	}
	if status := from("192.0.2.2"); status != http.StatusTooManyRequests {
		t.Errorf("a second one that pretends to come from elsewhere: %d, want 429", status)
	}
	trusted.Set([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")})
	if status := from("192.0.2.2"); status != http.StatusSwitchingProtocols {
		t.Errorf("through a trusted proxy: %d, want 101", status)
	}
	if status := from("203.0.113.1, 192.0.2.2"); status != http.StatusTooManyRequests {
		t.Errorf("one that puts an address before its own: %d, want 429", status)
	}
}
