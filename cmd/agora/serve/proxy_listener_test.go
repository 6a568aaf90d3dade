package serve

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

	"github.com/agora-relay/agora/cmd/agora/porttest"
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

func TestAPROXYHeaderIsTakenFromTrustedProxiesAlone(t *testing.T) {
	t.Parallel()
	var nobody, all edge.Proxies
	all.Set([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	if status, body := askThrough(t, &all, porttest.ProxyHeader(t, 2)); status != 200 || body != "192.0.2.7:555" {
		t.Errorf("by a trusted proxy: %d %q, want 192.0.2.7:555", status, body)
	}
	if status, body := askThrough(t, &nobody, porttest.ProxyHeader(t, 2)); status == 200 {
		t.Errorf("a header of somebody's own: taken, as %q", body)
	}
	if status, body := askThrough(t, &nobody, ""); status != 200 || !strings.HasPrefix(body, "127.0.0.1:") {
		t.Errorf("no proxy: %d %q, want the peer's address", status, body)
	}
	if status, body := askThrough(t, &all, ""); status == 200 {
		t.Errorf("a trusted proxy without a header: taken, as %q", body)
	}
	if status, body := askThrough(t, &all, porttest.ProxyHeader(t, 1)); status == 200 {
		t.Errorf("version 1: taken, as %q", body)
	}
}
