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
