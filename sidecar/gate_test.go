package sidecar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/sidecar"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// folk takes any token "tenant/name/id" for a principal of that tenant and name, which may be that agent.
type folk struct{}

// Authenticate returns the principal that the token names.
func (folk) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	words := strings.Split(c.Token, "/")
	if len(words) != 3 {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "a token is tenant/name/id")
	}
	return edge.Principal{Tenant: words[0], Name: words[1], Agents: []string{words[2]}}, nil
}

// closed opens a site of two edges that ask everybody who they are, and let friends alone speak to the agent; allowed
// are the peers of p2p.allow.
func closed(t *testing.T, allowed ...peer.ID) *site {
	t.Helper()
	rules, err := policy.Parse([]byte(`rules: [{name: rest, who: {names: ['*']}, agents: ['*'], send: [nobody], directory: true, relay: true},
		{name: friends, who: {names: [friend, plain, 'p2p.allow/*']}, agents: ['*'], send: ['*'], directory: true, relay: true}]`))
	if err != nil {
		t.Fatal(err)
	}
	p := new(policy.Policy)
	p.Set(rules)
	s := &site{t: t, allow: allowed, token: "default/plain/plain"}
	s.start(2, edge.Config{Auth: folk{}, Policy: p})
	return s
}

// guest is a peer that asks.
type guest struct {
	*p2phost.Host
	s   *site
	key crypto.PrivKey
}

func newGuest(t *testing.T) *guest {
	t.Helper()
	g := new(guest)
	var err error
	if g.key, err = p2phost.NewKey(); err != nil {
		t.Fatal(err)
	}
	if g.Host, err = p2phost.New(p2phost.Config{Key: g.key}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func (s *site) guest() *guest {
	s.t.Helper()
	g := newGuest(s.t)
	g.s = s
	return g
}

// goes reports whether an address is one of a way: direct, websocket, circuit.
func goes(way, address string) bool {
	return strings.Contains(address, "p2p-circuit") == (way == "circuit") && strings.Contains(address, "/ws") == (way == "websocket")
}

// registers registers the peer as an agent by a token, with a proof or without.
func (g *guest) registers(token string, proves bool) {
	g.s.t.Helper()
	words := strings.Split(token, "/")
	said := map[string]any{"agent_name": words[2], "peer_id": g.ID().String(), "addrs": []string{}}
	if proves {
		b := wire.Binding{Tenant: words[0], Agent: agora.AgentID(words[2]), Edge: g.s.door(0).ID().String(), Peer: g.ID().String(), Time: time.Now().UnixMilli()}
		signature, err := g.key.Sign(b.Statement())
		if err != nil {
			g.s.t.Fatal(err)
		}
		said["proof"] = wire.Proof{Edge: b.Edge, Time: b.Time, Signature: signature}
	}
	body, err := json.Marshal(said)
	if err != nil {
		g.s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(await.Context(g.s.t), http.MethodPost, g.s.HTTP(0)+"/register", bytes.NewReader(body))
	if err != nil {
		g.s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	if status, answer := g.s.does(r); status != http.StatusOK || strings.Contains(answer, `"bound":true`) != proves {
		g.s.t.Fatalf("%s: %d %s", token, status, answer)
	}
}

// at returns where an agent is reached in one of the ways.
func (s *site) at(way string) (at peer.AddrInfo) {
	s.t.Helper()
	await.True(s.t, "the peer is reached by "+way, func() bool {
		for _, a := range s.registered().Addresses {
			if !goes(way, a) {
				continue
			}
			info, err := peer.AddrInfoFromString(a)
			if err != nil {
				s.t.Fatal(err)
			}
			at = *info
			return true
		}
		return false
	})
	return at
}

// asks asks an agent by a protocol, and returns the answer; an error where there is no way to it.
func (g *guest) asks(way string, protocol, request string) (string, error) {
	g.s.t.Helper()
	ctx := network.WithAllowLimitedConn(await.Context(g.s.t), "test")
	at := g.s.at(way)
	g.Peerstore().ClearAddrs(at.ID)                     // what it has heard of other ways
	defer func() { _ = g.Network().ClosePeer(at.ID) }() // the next one goes another way
	if err := g.Connect(ctx, at); err != nil {
		return "", err
	}
	st, err := g.NewStream(ctx, at.ID, wire.HandoffProtocol)
	if protocol == wire.CardProtocol {
		st, err = g.NewStream(ctx, at.ID, wire.CardProtocol)
	}
	if err != nil {
		return "", err
	}
	defer st.Reset()
	_ = st.SetDeadline(time.Now().Add(await.Long))
	if _, err := io.WriteString(st, request); err != nil {
		return "", err
	}
	b, err := io.ReadAll(st)
	return string(b), err
}

const greet = `{"method":"POST","path":"/greet/{name}","params":{"name":"Ada"}}`

// Who asks, and how it reaches the agent, and what the cluster says of it.
func TestASidecarAnswersWhomItsClusterLetsSpeakToItsAgent(t *testing.T) {
	ways := []string{"direct", "websocket", "circuit"}
	for _, auth := range []bool{true, false} {
		var allowed *guest
		var s *site
		if auth {
			allowed = newGuest(t)
			s = closed(t, allowed.ID())
			allowed.s = s
		} else {
			s = newSite(t, 2)
			allowed = s.guest()
		}
		p := newPlain(t)
		own := s.guest()
		s.run(p, func(cfg *sidecar.Config) { cfg.Peer.Allow = []string{own.ID().String()} })
		peers := map[string]*guest{"a stranger": s.guest(), "one whom p2p.allow has": allowed, "one whom --p2p-allow has": own}
		for about, as := range map[string]struct {
			token  string
			proves bool
		}{
			"one that is named and not bound": {"default/friend/named", false}, "one of another tenant": {"other/friend/f", true},
			"one that may not": {"default/rest/r", true}, "one that may": {"default/friend/f", true},
		} {
			peers[about] = s.guest()
			if auth {
				peers[about].registers(as.token, as.proves)
			}
		}
		may := map[string]bool{"one that may": true, "one whom p2p.allow has": true, "one whom --p2p-allow has": true}
		for about, g := range peers {
			for _, way := range ways {
				before := p.asked.Load()
				text, err := g.asks(way, wire.HandoffProtocol, greet)
				ran := err == nil && strings.Contains(text, `"hello":"Ada"`)
				want := !auth || may[about]
				if about == "one whom --p2p-allow has" && auth && way == "circuit" {
					want = false // an edge connects nobody whom it does not know
				}
				if ran != want || !want && p.asked.Load() != before {
					t.Errorf("authentication %v: %s by %s is answered %q, %v, want it to reach the agent %v", auth, about, way, text, err, want)
				}
				if !want && way != "circuit" && (err != nil || !strings.Contains(text, `"code":403`)) {
					t.Errorf("%s by %s is told %q, %v, want 403", about, way, text, err)
				}
				card, err := g.asks(way, wire.CardProtocol, "")
				if shown := err == nil && strings.Contains(card, `"name":"plain"`); shown != want {
					t.Errorf("authentication %v: %s by %s is shown %q, %v, want the card %v", auth, about, way, card, err, want)
				}
			}
		}
		for _, k := range s.Edges() { // an edge has asked its own rules
			r, err := http.NewRequestWithContext(await.Context(t), http.MethodPost, s.HTTP(k)+"/agents/plain/handoff?as=f", strings.NewReader(greet))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer default/friend/f")
			if status, answer := s.does(r); status != http.StatusOK || !strings.Contains(answer, `"hello":"Ada"`) {
				t.Errorf("authentication %v: by edge %d the agent answers %d %s", auth, k, status, answer)
			}
		}
	}
}

// What a stranger sends is not waited for, and not read.
func TestAStrangerIsRefusedUnread(t *testing.T) {
	s, p := closed(t), newPlain(t)
	s.run(p, nil)
	g := s.guest()
	at := s.at("direct")
	if err := g.Connect(await.Context(t), at); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{wire.HandoffProtocol, wire.CardProtocol} {
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				st, err := g.NewStream(await.Context(t), at.ID, wire.HandoffProtocol)
				if err != nil {
					t.Errorf("%s: %v", protocol, err)
					return
				}
				defer st.Reset()
				_ = st.SetDeadline(time.Now().Add(await.Long))
				if _, err := io.WriteString(st, `{"method":"POST",`); err != nil { // and no more
					t.Error(err)
				}
				if b, err := io.ReadAll(st); err != nil || !strings.Contains(string(b), `"code":403`) {
					t.Errorf("a stranger is told %q, %v", b, err)
				}
			})
		}
		all.Wait()
	}
	if n := p.asked.Load(); n != 0 {
		t.Errorf("the agent was asked %d times", n)
	}
}

// What an edge hands over is for the agent only as long as the cluster knows the peer as the agent's.
func TestAnEdgeHandsOverNothingWhereThePeerIsNotBound(t *testing.T) {
	s, p := closed(t), newPlain(t)
	r := s.run(p, nil)
	at := s.at("direct")
	zed := func(path string) (int, string) {
		body := fmt.Sprintf(`{"agent_name":"zed","peer_id":%q,"addrs":[%q]}`, at.ID, at.Addrs[0])
		if path != "/register" {
			body = greet
		}
		q, err := http.NewRequestWithContext(await.Context(t), http.MethodPost, s.HTTP(1)+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer other/friend/zed")
		return s.does(q)
	}
	if status, answer := zed("/register"); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	if status, answer := zed("/agents/zed/handoff"); status == http.StatusOK || strings.Contains(answer, "hello") {
		t.Errorf("while the peer is bound to another agent: %d %s", status, answer)
	}
	s.blind.Store(true) // no edge takes the registration any more
	if err := s.Node(0).Config().Presence.Peers.Unbind(t.Context(), at.ID.String()); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the cluster knows the peer as nobody's", func() bool {
		found, err := s.Node(1).Config().Presence.Peers.Find(t.Context(), at.ID.String())
		return err == nil && found.Agent() == nil
	})
	r.Sidecar.ForgetBinding()
	if status, answer := zed("/agents/zed/handoff"); status == http.StatusOK || strings.Contains(answer, "hello") {
		t.Errorf("when the peer is bound to nobody: %d %s", status, answer)
	}
	if n := p.asked.Load(); n != 0 {
		t.Errorf("the agent was asked %d times", n)
	}
}

// An edge that comes, or that drains, is no stranger.
func TestAnEdgeIsKnownAsSoonAsItHandsOver(t *testing.T) {
	s, p := closed(t), newPlain(t)
	s.run(p, func(cfg *sidecar.Config) { cfg.Limits.Look = time.Hour })
	s.at("circuit")
	hands := func(k int) (int, string) {
		q, err := http.NewRequestWithContext(await.Context(t), http.MethodPost, s.HTTP(k)+"/agents/plain/handoff?as=f", strings.NewReader(greet))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer default/friend/f")
		return s.does(q)
	}
	k := s.AddEdge()
	await.True(t, "the new edge reaches the agent", func() bool {
		status, answer := hands(k)
		return status == http.StatusOK && strings.Contains(answer, `"hello":"Ada"`)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	s.door(k).Drain(ctx)
	if status, answer := hands(k); status != http.StatusOK {
		t.Errorf("by an edge that drains: %d %s", status, answer)
	}
}

func TestASidecarListensOnLoopbackAndSaysSoWhereItDoesNot(t *testing.T) {
	for listen, warns := range map[string]bool{"": false, "none": false, "/ip4/127.0.0.1/tcp/0": false, "/ip6/::1/tcp/0": false, "/ip4/0.0.0.0/tcp/0": true} {
		s, p := newSite(t, 1), newPlain(t)
		var log lockedBuffer
		r := s.run(p, func(cfg *sidecar.Config) {
			cfg.Peer.Listen = listen
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		if got := strings.Contains(log.String(), "other machines reach"); got != warns {
			t.Errorf("at %q it warns: %v, want %v\n%s", listen, got, warns, log.String())
		}
		await.True(t, "edges know the peer", func() bool { return s.registered().Peer != "" })
		for _, text := range s.registered().Addresses {
			a, err := ma.NewMultiaddr(text)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := a.ValueForProtocol(ma.P_IP4); !warns && err == nil && v != "127.0.0.1" {
				t.Errorf("at %q it says that it is reached at %s", listen, text)
			}
		}
		if err := r.stops(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// lockedBuffer is a buffer that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was written.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestAPeerThatIsAllowedMustBeOne(t *testing.T) {
	_, err := sidecar.New(sidecar.Config{Agent: "http://127.0.0.1:1", Peer: sidecar.Peer{Allow: []string{"bob"}}})
	if e := agora.AsError(err); e == nil || e.Code != agora.InvalidRequest {
		t.Errorf("bob is allowed: %v", err)
	}
}

// A web page gets no further than its first request at the agent's port, whatever the cluster lets peers do.
func TestNoPageReachesTheAgentByThePeersPort(t *testing.T) {
	for _, s := range []*site{closed(t), newSite(t, 2)} {
		s.run(newPlain(t), nil)
		_, at, err := manet.DialArgs(s.at("direct").Addrs[0])
		if err != nil {
			t.Fatal(err)
		}
		for about, c := range map[string]struct {
			name, value string
			status      int
		}{
			"a program": {"X-Nothing", "", 101}, "a page": {"Origin", "http://evil.example", 403}, "a page of nowhere": {"Origin", "null", 403}, "a page of this machine": {"Origin", "http://" + at, 403},
			"a page that says so itself": {"Sec-Fetch-Site", "cross-site", 403}, "a page under another name": {"Host", "evil.example", 403},
		} {
			r, err := http.NewRequestWithContext(await.Context(t), http.MethodGet, "http://"+at+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
				r.Header.Set(name, value)
			}
			if c.name == "Host" {
				r.Host = c.value
			} else {
				r.Header.Set(c.name, c.value)
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatalf("%s: %v", about, err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("%s is answered %d, want %d", about, resp.StatusCode, c.status)
			}
		}
	}
}
