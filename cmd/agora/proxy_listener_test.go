package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
)

// askThrough sends a header and a request to a server that answers with where
// it takes the connection to come from; it returns the answer's status and body, 0 for none.
func askThrough(t *testing.T, trusted *edge.Proxies, header string) (status int, body string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: await.Long, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RemoteAddr)
	})}
	over := make(chan error, 1)
	go func() { over <- s.Serve(proxyListener(l, trusted)) }()
	defer func() { s.Close(); <-over }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(await.Long))
	fmt.Fprintf(c, "%sGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", header)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ""
	}
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// proxyHeader is a PROXY protocol header for a client at 192.0.2.7:555.
func proxyHeader(t *testing.T, version byte) string {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(version,
		&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 555}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443})
	b, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAPROXYHeaderIsTakenFromTrustedProxiesAlone(t *testing.T) {
	t.Parallel()
	var nobody, all edge.Proxies
	all.Set([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	if status, body := askThrough(t, &all, proxyHeader(t, 2)); status != 200 || body != "192.0.2.7:555" {
		t.Errorf("by a trusted proxy: %d %q, want 192.0.2.7:555", status, body)
	}
	if status, body := askThrough(t, &nobody, proxyHeader(t, 2)); status == 200 {
		t.Errorf("a header of somebody's own: taken, as %q", body)
	}
	if status, body := askThrough(t, &nobody, ""); status != 200 || !strings.HasPrefix(body, "127.0.0.1:") {
		t.Errorf("no proxy: %d %q, want the peer's address", status, body)
	}
	if status, body := askThrough(t, &all, ""); status == 200 {
		t.Errorf("a trusted proxy without a header: taken, as %q", body)
	}
	if status, body := askThrough(t, &all, proxyHeader(t, 1)); status == 200 {
		t.Errorf("version 1: taken, as %q", body)
	}
}

func TestBadLimitsAreRefusedByName(t *testing.T) {
	for want, args := range map[string][]string{
		"limits.tenant.rate":                   {"--limits.tenant.rate", "-1"},
		"limits.connections-per-ip":            {"--limits.connections-per-ip", "-1"},
		"server.trusted-proxies":               {"--server.trusted-proxies", "10.0.0.0/8,balancer"},
		"write \"::ffff:10.0.0.0/104\"":        {"--server.trusted-proxies", "::ffff:10.0.0.0/104"},
		"server.proxy-protocol needs server.t": {"--server.proxy-protocol"},
	} {
		if _, err := parse(t, nil, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want one about %s", args, err, want)
		}
	}
	s, err := parse(t, map[string]string{"AGORA_LIMITS_HANDSHAKES_PER_IP": "2.5"}, "--server.trusted-proxies", "10.1.2.3,2001:db8::/32", "--limits.tenant.bytes", "7")
	if l := s.Limits(); err != nil || l.HandshakesPerIP != 2.5 || l.TenantBytes != 7 {
		t.Errorf("limits = %+v, %v", l, err)
	}
	if p, err := s.server.proxies(); err != nil || fmt.Sprint(p) != "[10.1.2.3/32 2001:db8::/32]" {
		t.Errorf("trusted = %v, %v", p, err)
	}
}
