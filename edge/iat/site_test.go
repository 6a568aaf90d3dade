package iat_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/iat"
	"github.com/agora-relay/agora/edge/rest"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/iat"
)

// site is a cluster whose edges have the door, beside those that share its guard: plain HTTP, and WebSockets at
// /guarded.
type site struct {
	*agoratest.Cluster
	one, two *http.Client // that speak HTTP/1.1, and HTTP/2 without TLS

	mu    sync.Mutex // guards doors
	doors []*iat.Door
}

// setup says what a site is to be like. The zero value will do.
type setup struct {
	agoratest.Options
	door    iat.Config
	web     web.Config
	resolve bool // links are followed in workspaces
}

// open starts a site, which ends with the test.
func open(t testing.TB, s setup) *site {
	t.Helper()
	at := &site{one: speaking(t, true), two: speaking(t, false)}
	s.Approvals = true
	s.Doors = []func(agoratest.Entry) (agoratest.Opened, error){
		func(e agoratest.Entry) (agoratest.Opened, error) { return at.opens(e, s), nil },
	}
	at.Cluster = agoratest.Start(t, s.Options)
	return at
}

// opened is the doors of one edge.
type opened struct {
	*web.Kit
	door    *iat.Door
	guarded *ws.Door
}

// Close ends all of them.
func (o opened) Close() {
	o.Kit.Close()
	o.guarded.Close()
}

// Wait returns when nothing of them runs.
func (o opened) Wait() {
	o.Kit.Wait()
	o.door.Wait()
	o.guarded.Wait()
}

func (s *site) opens(e agoratest.Entry, o setup) opened {
	c := e.Node.Config()
	k := web.New(e.Node, o.web)
	g := tools.NewGuard(tools.GuardConfig{Presence: c.Presence, Now: c.Broker.Now, Root: wire.RootOf, Resolve: o.resolve})
	o.door.Approvals, o.door.Tools = c.Approvals, g
	d := iat.New(e.Node, k, o.door)
	d.Mount(e.Mux)
	carriers := carrier.New(g)
	e.Node.Screens(carriers.Screen)
	rest.Mount(k, e.Mux, carriers)
	guarded := ws.New(e.Node, ws.Config{Carriers: carriers})
	e.Mux.Handle("/guarded", guarded)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doors = append(s.doors, d)
	return opened{k, d, guarded}
}

// stats returns the counters of the door of edge k.
func (s *site) stats(k int) *iat.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doors[k].Stats()
}

// speaking returns a client of one version of HTTP, whose connections end with the test.
func speaking(t testing.TB, first bool) *http.Client {
	p := new(http.Protocols)
	p.SetHTTP1(first)
	p.SetUnencryptedHTTP2(!first)
	c := &http.Client{Transport: &http.Transport{Protocols: p}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// each plays a test over each version of HTTP.
func (s *site) each(t *testing.T, play func(t *testing.T, c *http.Client)) {
	t.Helper()
	t.Run("HTTP1", func(t *testing.T) { play(t, s.one) })
	t.Run("HTTP2", func(t *testing.T) { play(t, s.two) })
}

// folk takes any token "tenant/name/ids" for a principal of that tenant and name, which may be those agents, with
// commas between their patterns; any agent where there are none. It can revoke them.
type folk struct {
	mu      sync.Mutex // guards the fields below
	gone    map[string]bool
	version uint64
}

// Authenticate returns the principal that the token names.
func (f *folk) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	words := strings.Split(c.Token, "/")
	if len(words) < 2 {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "a token is tenant/name/ids")
	}
	p := edge.Principal{Tenant: words[0], Name: words[1], Any: len(words) == 2}
	if !p.Any {
		p.Agents = strings.Split(words[2], ",")
	}
	return p, f.Revalidate(&p)
}

// Version changes when somebody was revoked.
func (f *folk) Version() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

// Revalidate returns an error for who was revoked.
func (f *folk) Revalidate(p *edge.Principal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone[p.Name] {
		return agora.Errorf(agora.Unauthorized, "the credentials were revoked")
	}
	return nil
}

// revoke takes a principal's credentials back.
func (f *folk) revoke(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone == nil {
		f.gone = map[string]bool{}
	}
	f.gone[name] = true
	f.version++
}

var _ edge.Warden = (*folk)(nil)

// guarded is a site with authentication.
func guarded(t testing.TB, s setup) (*site, *folk) {
	f := new(folk)
	s.Node.Auth = f
	return open(t, s), f
}

// during returns what is true once a while has passed: for what must not come meanwhile.
func during(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}
