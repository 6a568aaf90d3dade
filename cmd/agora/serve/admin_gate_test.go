package serve

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/agora-relay/agora"
)

// asked is a request that came from one address to another.
func asked(from, to string, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9100/v1/edges", nil)
	r.RemoteAddr = net.JoinHostPort(from, "40000")
	local := &net.TCPAddr{IP: net.ParseIP(to), Port: 9100}
	for k := 0; k < len(header); k += 2 {
		r.Header.Set(header[k], header[k+1])
		if header[k] == "Host" {
			r.Host = header[k+1]
		}
	}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
}

func TestWithoutATokenFileOnlyLoopbackIsAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r    *http.Request
		want bool
	}{
		{asked("127.0.0.1", "127.0.0.1"), true},
		{asked("127.0.0.9", "127.0.0.1"), true},
		{asked("::1", "::1"), true},
		{asked("::ffff:127.0.0.1", "::ffff:127.0.0.1"), true},
		{asked("127.0.0.1", "127.0.0.1", "Host", "localhost:9100"), true},
		{asked("127.0.0.1", "127.0.0.1", "Host", "[::1]:9100"), true},
		{asked("10.0.0.7", "10.0.0.5"), false},
		{asked("10.0.0.5", "10.0.0.5"), false},  // this machine, by an address that others have for it
		{asked("127.0.0.6", "10.0.0.5"), false}, // a proxy of the mesh in the pod: it speaks for others
		{asked("10.0.0.7", "127.0.0.1"), false},
		{asked("10.0.0.7", "10.0.0.5", "X-Forwarded-For", "127.0.0.1"), false},
		{asked("10.0.0.7", "10.0.0.5", "Forwarded", "for=127.0.0.1"), false},
		{asked("10.0.0.7", "10.0.0.5", "X-Real-IP", "127.0.0.1"), false},
		{asked("127.0.0.1", "127.0.0.1", "X-Forwarded-For", "10.0.0.7"), false}, // for somebody else
		{asked("127.0.0.1", "127.0.0.1", "Forwarded", "for=10.0.0.7"), false},
		{asked("127.0.0.1", "127.0.0.1", "X-Real-IP", "10.0.0.7"), false},
		{asked("127.0.0.1", "127.0.0.1", "Via", "1.1 proxy"), false},
		{asked("127.0.0.1", "127.0.0.1", "Host", "evil.example"), false}, // a name that its owner lets point here
		{asked("127.0.0.1", "127.0.0.1", "Host", "localhost.evil.example:9100"), false},
		{asked("127.0.0.1", "127.0.0.1", "Host", "10.0.0.5:9100"), false},
		{asked("127.0.0.1", "127.0.0.1", "Host", ""), false},
		{httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9100/", nil), false}, // nobody says where it came to
	} {
		err := gate{}.admits(c.r)
		if (err == nil) != c.want {
			t.Errorf("from %s to %v at %q with %v: %v, want it answered: %t",
				c.r.RemoteAddr, c.r.Context().Value(http.LocalAddrContextKey), c.r.Host, c.r.Header, err, c.want)
		}
		if err != nil && agora.AsError(err).Code != agora.Forbidden {
			t.Errorf("refused with %v, want FORBIDDEN", err)
		}
	}
}
