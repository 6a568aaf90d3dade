package broker

import (
	"net/url"
	"strings"
	"testing"

	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/faultnet"
)

// testCable is a connection to a server that can be cut, and each of whose ways can be held up.
func testCable(t testing.TB, s *natsd.Server) *faultnet.Proxy {
	t.Helper()
	u, err := url.Parse(strings.Split(s.URL(), ",")[0])
	if err != nil {
		t.Fatal(err)
	}
	return faultnet.NewProxy(t, u.Host)
}

// testCabled returns a lane of a broker that reaches its server by a cable.
func testCabled(t testing.TB) (*faultnet.Proxy, *Broker, *Lane) {
	t.Helper()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() })
	l := b.Lane(lane("s1", 1, false))
	t.Cleanup(l.Close)
	return c, b, l
}
