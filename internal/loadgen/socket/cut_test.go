package socket

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
)

// TestACutSaysNothingOverTLSEither: a TLS connection that is closed says so first, its server closes it too, and the
// agent's reader takes that for a connection that was lost.
func TestACutSaysNothingOverTLSEither(t *testing.T) {
	ends := make(chan error, 1)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			defer c.Close()
			_, err = c.Write([]byte("hello"))
		}
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		ends <- err
	}))
	defer s.Close()
	nc, err := tls.Dial("tcp", s.Listener.Addr().String(), s.Client().Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	c := New(nc, 0)
	if err := c.Send([]byte("GET / HTTP/1.1\r\nHost: edge\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c.r, make([]byte, len("hello"))); err != nil {
		t.Fatal(err)
	}
	if err := c.Cut(); err != nil {
		t.Errorf("cut: %v", err)
	}
	if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("its server is told %v, want a reset", err)
	}
	if _, err := c.Next(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("its reader is told %v, want that it is closed here", err)
	}
}
