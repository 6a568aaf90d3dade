package sidecar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/goleak"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/edge/rest"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/edge/ws"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/sidecar"
	wire "github.com/agora-relay/agora/wire/p2p"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a cluster whose edges are relays of libp2p, and say so. They have a door for WebSockets at /asks, by which
// peers are asked.
type site struct {
	*agoratest.Cluster
	t     *testing.T
	relay p2p.Relay   // of the edges that it begins with
	allow []peer.ID   // peers that edges allow
	token string      // that all who ask by the site present; empty for none
	begun atomic.Bool // those are there
	blind atomic.Bool // edges know no peers

	mu    sync.Mutex // guards the fields below
	doors []*p2p.Door
	told  []told // registrations of peers, the last one last
}

// told is what edges are told of a peer.
type told struct {
	Agent     string   `json:"agent_name"`
	Peer      string   `json:"peer_id"`
	Addresses []string `json:"addrs"`
	Skills    []struct{ Name string }
	TTL       int `json:"ttl"`
}

// can returns the names of the skills that edges were told of.
func (r *told) can() (names []string) {
	for _, s := range r.Skills {
		names = append(names, s.Name)
	}
	return names
}

func newSite(t *testing.T, edges int) *site {
	t.Helper()
	return openSite(t, edges, p2p.Relay{})
}

// openSite is newSite with settings of the relays of these edges, and not of those that are added.
func openSite(t *testing.T, edges int, relay p2p.Relay) *site {
	t.Helper()
	s := &site{t: t, relay: relay}
	s.start(edges, edge.Config{})
	return s
}

// start starts the cluster.
func (s *site) start(edges int, cfg edge.Config) {
	s.t.Helper()
	cfg.Heartbeat = time.Minute
	s.Cluster = agoratest.Start(s.t, agoratest.Options{
		Edges: edges, Grace: time.Hour, Node: cfg, Doors: []func(agoratest.Entry) (agoratest.Opened, error){s.opens},
	})
	s.begun.Store(true)
}

// opened is the doors of one edge.
type opened struct {
	*web.Kit
	door *p2p.Door
	asks *ws.Door
}

func (o *opened) Drain(ctx context.Context) { o.door.Drain(ctx); o.Kit.Drain(ctx) }
func (o *opened) Close()                    { o.door.Close(); o.Kit.Close(); o.asks.Close() }
func (o *opened) Wait()                     { o.door.Wait(); o.Kit.Wait(); o.asks.Wait() }

func (s *site) opens(e agoratest.Entry) (agoratest.Opened, error) {
	key, err := p2phost.NewKey()
	if err != nil {
		return nil, err
	}
	carriers := carrier.New(nil)
	e.Node.Screens(carriers.Screen)
	cfg := p2p.Config{Key: key, Listen: []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/tcp/0")}, Carriers: carriers, Allow: s.allow}
	if !s.begun.Load() {
		cfg.Relay = s.relay
	}
	d, err := p2p.New(e.Node, cfg)
	if err != nil {
		return nil, err
	}
	kit := web.New(e.Node, web.Config{})
	rest.Mount(kit, e.Mux, carriers)
	asks := ws.New(e.Node, ws.Config{Carriers: carriers})
	e.Mux.Handle("/asks", asks)
	inner := http.NewServeMux()
	d.Mount(kit, inner)
	e.Mux.HandleFunc("/p2p", s.passes(inner))
	e.Mux.HandleFunc("/p2p/access", s.passes(inner))
	e.Mux.HandleFunc("/peers", s.passes(inner))
	e.Mux.HandleFunc("/register", s.passes(inner))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doors = append(s.doors, d)
	return &opened{kit, d, asks}, nil
}

// passes returns the door's paths, unless edges are to know no peers, and notes registrations.
func (s *site) passes(inner http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.blind.Load() {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodPost {
			inner.ServeHTTP(w, r)
			return
		}
		b, err := io.ReadAll(r.Body)
		var one told
		if err = first(err, json.Unmarshal(b, &one)); err != nil {
			s.t.Errorf("an edge is told what is no registration: %v", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes())
		if answer.Code != http.StatusOK {
			s.t.Logf("an edge was told %s, and said %d %s", b, answer.Code, answer.Body)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, one)
	}
}

// registered returns what edges were told of the peer last.
func (s *site) registered() (last told) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.told); n > 0 {
		last = s.told[n-1]
	}
	return last
}

func (s *site) door(k int) *p2p.Door {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doors[k]
}

// dial connects an agent that has the Go client.
func (s *site) dial(id string) *client.Client {
	s.t.Helper()
	c, err := client.Dial(await.Context(s.t), client.Config{URLs: s.URLs(), Agent: id, Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// post asks an edge over HTTP.
func (s *site) post(path, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(await.Context(s.t), http.MethodPost, s.HTTP(s.Edges()[0])+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.does(r)
}

func (s *site) does(r *http.Request) (int, string) {
	s.t.Helper()
	if s.token != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

// running is a sidecar that runs.
type running struct {
	*sidecar.Sidecar
	s     *site
	admin string
	end   context.CancelFunc
	over  chan struct{} // closed when Run has returned
	err   error
}

// run runs a sidecar beside an agent, and waits until it is in the directory. It ends with the test.
func (s *site) run(p *plain, change func(*sidecar.Config)) *running {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := sidecar.Config{
		Agent: "http://" + p.address, Admin: l, Peer: sidecar.Peer{Listen: "/ip4/127.0.0.1/tcp/0"},
		Client: client.Config{URLs: s.URLs(), Token: s.token, Patience: time.Hour, Stall: time.Hour, Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}},
		Limits: sidecar.Limits{Look: 50 * time.Millisecond, Retry: 10 * time.Millisecond, Card: time.Minute, FirstByte: time.Minute},
		Log:    slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&cfg)
	}
	side, err := sidecar.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	r := &running{Sidecar: side, s: s, admin: "http://" + cfg.Admin.Addr().String(), end: end, over: make(chan struct{})}
	go func() {
		defer close(r.over)
		r.err = side.Run(ctx)
	}()
	s.t.Cleanup(func() {
		end()
		await.Recv(s.t, "the sidecar has ended", r.over)
	})
	await.True(s.t, "the agent is a member, and the sidecar knows", func() bool { return s.isMember("plain") && r.ready() })
	return r
}

// ready reports whether the sidecar says that it is.
func (r *running) ready() bool {
	q, err := http.NewRequestWithContext(await.Context(r.s.t), http.MethodGet, r.admin+"/readyz", nil)
	if err != nil {
		r.s.t.Fatal(err)
	}
	status, _ := r.s.does(q)
	return status == http.StatusOK
}

// isMember reports whether an agent is in the directory.
func (s *site) isMember(id string) bool {
	status, _ := s.get("/agents/" + id)
	return status == http.StatusOK
}

// can reports whether the directory has an agent with a skill.
func (s *site) can(skill string) bool {
	_, body := s.get("/agents?skill=" + skill)
	return strings.Contains(body, `"id":"plain"`)
}

// showsPeer reports whether the directory shows the agent as a peer.
func (s *site) showsPeer() bool {
	_, body := s.get("/agents/plain")
	return strings.Contains(body, `"dialect":"p2p"`)
}

func (s *site) get(path string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(await.Context(s.t), http.MethodGet, s.HTTP(s.Edges()[0])+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.does(r)
}

// stops ends the sidecar as a signal does, and returns what Run does.
func (r *running) stops() error {
	r.end()
	await.Recv(r.s.t, "the sidecar has ended", r.over)
	return r.err
}

// caller is a peer that asks.
type caller struct {
	t    *testing.T
	host *p2phost.Host
	to   peer.ID
}

// calls makes a peer that reaches the agent at the addresses that are wanted, once edges were told of such.
func (s *site) calls(want func(address string) bool) *caller {
	s.t.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := p2phost.New(p2phost.Config{Key: key})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { h.Close() })
	c := &caller{t: s.t, host: h}
	await.True(s.t, "the peer can be reached", func() bool {
		r := s.registered()
		for _, a := range r.Addresses {
			if !want(a) {
				continue
			}
			info, err := peer.AddrInfoFromString(a)
			if err != nil {
				s.t.Fatal(err)
			}
			if err := h.Connect(await.Context(s.t), *info); err == nil {
				c.to = info.ID
				return true
			}
		}
		return false
	})
	return c
}

func direct(a string) bool  { return !strings.Contains(a, "p2p-circuit") }
func relayed(a string) bool { return !direct(a) }

// opens opens a stream.
func (c *caller) opens(p protocol.ID) network.Stream {
	c.t.Helper()
	s, err := c.host.NewStream(network.WithAllowLimitedConn(await.Context(c.t), "test"), c.to, p)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.Reset() })
	_ = s.SetDeadline(time.Now().Add(await.Long))
	return s
}

// hands hands a request over, and returns the answer, and the error where it was not ended.
func (c *caller) hands(request string) (string, error) {
	c.t.Helper()
	s := c.opens(wire.HandoffProtocol)
	if _, err := io.WriteString(s, request); err != nil {
		c.t.Fatal(err)
	}
	b, err := io.ReadAll(s)
	return string(b), err
}
