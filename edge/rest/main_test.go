package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is the door of one edge of a cluster, and clients of it that end with the test.
type site struct {
	*agoratest.Cluster
	*httptest.Server
	kit      *web.Kit
	one, two *http.Client // that speak HTTP/1.1, and HTTP/2 without TLS
}

// serve opens the door of edge 0.
func serve(t testing.TB, c *agoratest.Cluster) *site {
	t.Helper()
	kit, mux := web.New(c.Node(0), web.Config{Linger: await.Long}), http.NewServeMux()
	Mount(kit, mux, carrier.New(nil))
	MountProtocol(kit, mux, wire.Limits{Name: 77})
	mux.HandleFunc("/", kit.NotFound)
	s := &site{Cluster: c, Server: httptest.NewUnstartedServer(mux), kit: kit, one: speaking(true), two: speaking(false)}
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		kit.Close()
		s.one.CloseIdleConnections()
		s.two.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
		kit.Wait()
	})
	return s
}

// speaking returns a client of one version of HTTP.
func speaking(first bool) *http.Client {
	p := new(http.Protocols)
	p.SetHTTP1(first)
	p.SetUnencryptedHTTP2(!first)
	return &http.Client{Transport: &http.Transport{Protocols: p}}
}
