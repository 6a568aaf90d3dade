package p2p_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/presence"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// binds is what a peer says by its key in order to be an agent: now, at edge 0.
func (h *host) binds(tenant, agent string) wire.Binding {
	return wire.Binding{
		Tenant: tenant, Agent: agora.AgentID(agent), Edge: h.s.at(0).ID.String(), Peer: h.ID().String(), Time: time.Now().UnixMilli(),
	}
}

// signs returns the proof that a peer makes of it.
func (h *host) signs(b wire.Binding) *wire.Proof {
	h.s.t.Helper()
	signature, err := h.key.Sign(b.Statement())
	if err != nil {
		h.s.t.Fatal(err)
	}
	p := &wire.Proof{Edge: b.Edge, Time: b.Time, Signature: signature}
	if _, err := h.ID().ExtractPublicKey(); err != nil {
		if p.PublicKey, err = crypto.MarshalPublicKey(h.key.GetPublic()); err != nil {
			h.s.t.Fatal(err)
		}
	}
	return p
}

// registration is a registration of a peer; proof is left out if it is nil.
type registration struct {
	Agent string   `json:"agent_name"`
	Peer  string   `json:"peer_id"`
	Addrs []string `json:"addrs"`
	TTL   int      `json:"ttl,omitempty"`
	Proof any      `json:"proof,omitempty"`
}

// told is what is answered to one.
type told struct {
	Bound bool
	Why   string
}

// asked asks edge k by a token; an empty one is none.
func (s *site) asked(k int, token, method, path string, body any) (int, string) {
	s.t.Helper()
	var sent io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		sent = strings.NewReader(string(b))
	}
	r, err := http.NewRequestWithContext(await.Context(s.t), method, s.HTTP(k)+path, sent)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return answered(s.t, resp)
}

// claims registers a peer at edge k by a token, with a proof or nil, and returns the status and what is said.
func (s *site) claims(k int, token string, r registration) (int, told) {
	s.t.Helper()
	status, body := s.asked(k, token, http.MethodPost, "/register", r)
	var said told
	if status == http.StatusOK {
		if err := json.Unmarshal([]byte(body), &said); err != nil {
			s.t.Fatal(err)
		}
	} else {
		said.Why = body
	}
	return status, said
}

// registers binds a peer to an agent by a token, whose tenant it begins with, and by a proof.
func (s *site) registers(token, agent string, h *host) int {
	s.t.Helper()
	tenant, _, _ := strings.Cut(token, "/")
	status, said := s.claims(0, token, registration{Agent: agent, Peer: h.ID().String(), Proof: h.signs(h.binds(tenant, agent))})
	if status == http.StatusOK && !said.Bound {
		s.t.Errorf("%s is registered as %s and not bound: %s", h.ID(), agent, said.Why)
	}
	return status
}

// speaks reports whether edges take a peer for some agent.
func (h *host) speaks(k int) bool {
	h.s.t.Helper()
	return !strings.Contains(asks(h.s.t, h.edge(k, wire.CardProtocol), ""), `"code":403`)
}

// rsaHost is a peer whose id is no key.
func (s *site) rsaHost() *host {
	s.t.Helper()
	key, _, err := crypto.GenerateRSAKeyPair(2048, rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.keyed(key, p2phost.Config{Reserves: true})
}

func TestAPeerIsBoundByWhatItsKeyHasSignedAlone(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}}}})
	thief := s.enter()
	changed := func(change func(*wire.Binding)) func(h *host) any {
		return func(h *host) any {
			b := h.binds("t", "a")
			change(&b)
			return h.signs(b)
		}
	}
	said := func(change func(*wire.Proof)) func(h *host) any {
		return func(h *host) any {
			p := h.signs(h.binds("t", "a"))
			change(p)
			return p
		}
	}
	whole := changed(func(*wire.Binding) {})
	for _, c := range []struct {
		about  string
		rsa    bool
		proof  func(h *host) any
		status int
		bound  bool
	}{
		{"nothing", false, func(*host) any { return nil }, 200, false},
		{"the peer's own word", false, whole, 200, true},
		{"its own word, and by the other edge", false, changed(func(b *wire.Binding) { b.Edge = s.at(1).ID.String() }), 200, true},
		{"its own word of four minutes ago", false, changed(func(b *wire.Binding) { b.Time -= 4 * 60_000 }), 200, true},
		{"its own word in four minutes", false, changed(func(b *wire.Binding) { b.Time += 4 * 60_000 }), 200, true},
		{"its own word of six minutes ago", false, changed(func(b *wire.Binding) { b.Time -= 6 * 60_000 }), 403, false},
		{"its own word in six minutes", false, changed(func(b *wire.Binding) { b.Time += 6 * 60_000 }), 403, false},
		{"for another agent", false, changed(func(b *wire.Binding) { b.Agent = "b" }), 403, false},
		{"for another tenant", false, changed(func(b *wire.Binding) { b.Tenant = "u" }), 403, false},
		{"for another cluster", false, changed(func(b *wire.Binding) { b.Edge = thief.ID().String() }), 403, false},
		{"for an edge that is not named", false, changed(func(b *wire.Binding) { b.Edge = "agora" }), 403, false},
		{"of another peer", false, changed(func(b *wire.Binding) { b.Peer = thief.ID().String() }), 403, false},
		{"by another key", false, func(h *host) any { return thief.signs(h.binds("t", "a")) }, 403, false},
		{"by another key that comes along", false, func(h *host) any {
			p := thief.signs(h.binds("t", "a"))
			p.PublicKey, _ = crypto.MarshalPublicKey(thief.key.GetPublic())
			return p
		}, 403, false},
		{"with another time than was signed", false, said(func(p *wire.Proof) { p.Time++ }), 403, false},
		{"with another edge than was signed", false, said(func(p *wire.Proof) { p.Edge = s.at(1).ID.String() }), 403, false},
		{"with a bit of the signature gone", false, said(func(p *wire.Proof) { p.Signature[5] ^= 1 }), 403, false},
		{"without a signature", false, said(func(p *wire.Proof) { p.Signature = nil }), 400, false},
		{"that is no object", false, func(*host) any { return true }, 400, false},
		{"in no base64", false, func(h *host) any {
			return map[string]any{"edge": s.at(0).ID.String(), "time": time.Now().UnixMilli(), "signature": "!"}
		}, 400, false},
		{"an RSA key's word", true, whole, 200, true},
		{"an RSA key's word without the key", true, said(func(p *wire.Proof) { p.PublicKey = nil }), 403, false},
		{"an RSA key's word with another key", true, func(h *host) any {
			p := h.signs(h.binds("t", "a"))
			p.PublicKey, _ = crypto.MarshalPublicKey(thief.key.GetPublic())
			return p
		}, 403, false},
		{"by another RSA key that comes along", true, func(h *host) any { return s.rsaHost().signs(h.binds("t", "a")) }, 403, false},
	} {
		h := s.enter()
		if c.rsa {
			_ = h.Close()
			h = s.rsaHost()
		}
		status, answer := s.claims(0, "t/p/a", registration{Agent: "a", Peer: h.ID().String(), Proof: c.proof(h)})
		if status != c.status || answer.Bound != c.bound || status == 200 && !c.bound && answer.Why == "" {
			t.Errorf("%s: %d %+v, want %d and bound %v", c.about, status, answer, c.status, c.bound)
		}
		for k := range 2 {
			if h.speaks(k) != c.bound {
				t.Errorf("%s: the peer speaks at edge %d: %v", c.about, k, !c.bound)
			}
		}
		if status, answer := s.asked(0, "t/p/a", http.MethodDelete, "/agents/a", nil); c.status == 200 && status >= 300 {
			t.Fatalf("%s: %d %s", c.about, status, answer)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for k := range 2 {
		for _, id := range []string{s.at(k).ID.String(), s.at(1 - k).ID.String()} {
			if status, answer := s.claims(k, "t/p/a", registration{Agent: "a", Peer: id}); status != http.StatusForbidden {
				t.Errorf("an edge is registered as an agent: %d %+v", status, answer)
			}
		}
	}
}

// binds binds a peer as an edge of an earlier version does.
func (s *site) bindsAsBefore(peer, tenant, agent, by string) {
	s.t.Helper()
	vouched, err := json.Marshal(map[string]any{"dialect": "p2p", "name": by, "tenant": tenant, "agents": []string{agent}})
	if err != nil {
		s.t.Fatal(err)
	}
	b := presence.Bound{Tenant: tenant, Agent: agora.AgentID(agent), By: append([]byte("1"), vouched...)}
	if err := s.Node(0).Config().Presence.Peers.Bind(s.t.Context(), peer, b, time.Hour); err != nil {
		s.t.Fatal(err)
	}
}

func TestWhoHasTheKeyHasThePeerAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}}}})
	cases := 0
	for about, steals := range map[string]func(id string){
		"another names the peer": func(id string) {
			status, said := s.claims(1, "t/mall/mall", registration{Agent: "mall", Peer: id, TTL: 86400})
			if status != http.StatusOK || said.Bound {
				t.Errorf("a peer that is only named: %d %+v", status, said)
			}
		},
		"one of another tenant names it":                        func(id string) { s.claims(1, "u/mall/mall", registration{Agent: "mall", Peer: id, TTL: 86400}) },
		"an edge of an earlier version has bound it to another": func(id string) { s.bindsAsBefore(id, "t", "mall", "mall") },
	} {
		h, owner := s.enter(), fmt.Sprintf("alice-%d", cases) // another one each time: the peer before may not be known to have gone
		cases++
		steals(h.ID().String())
		if status := s.registers("t/"+owner+"/"+owner, owner, h); status != http.StatusOK {
			t.Errorf("%s: the owner's registration is %d", about, status)
		}
		await.True(t, about+": the peer is its owner", func() bool {
			found, err := s.Node(1).Config().Presence.Peers.Find(t.Context(), h.ID().String())
			return err == nil && found.Agent() != nil && string(found.Agent().Agent) == owner && h.speaks(0) && h.speaks(1)
		})
		_ = h.Close()
	}
}

func TestTheLastWordOfAPeerCounts(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}}}})
	h := s.enter()
	bound := func() string {
		found, err := s.Node(0).Config().Presence.Peers.Find(t.Context(), h.ID().String())
		if err != nil || found.Agent() == nil {
			t.Fatalf("%+v, %v", found, err)
		}
		return found.Agent().Tenant + "/" + string(found.Agent().Agent)
	}
	first, second := h.binds("t", "a"), h.binds("u", "b")
	second.Time = first.Time + 1
	for _, c := range []struct {
		about, token, agent string
		by                  *wire.Binding
		status              int
		is                  string
	}{
		{"the first", "t/p/a", "a", &first, 200, "t/a"},
		{"the same again", "t/p/a", "a", &first, 200, "t/a"},
		{"a later one", "u/q/b", "b", &second, 200, "u/b"},
		{"the first, which somebody has kept", "t/p/a", "a", &first, 403, "u/b"},
		{"none", "t/p/a", "a", nil, 200, "u/b"},
	} {
		r := registration{Agent: c.agent, Peer: h.ID().String()}
		if c.by != nil {
			r.Proof = h.signs(*c.by)
		}
		if status, said := s.claims(0, c.token, r); status != c.status || bound() != c.is {
			t.Errorf("%s: %d %+v, and the peer is %s, want %d and %s", c.about, status, said, bound(), c.status, c.is)
		}
	}
}

func TestARenewalWithoutAProofLengthensNoBinding(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: folk{}}}})
	h := s.enter()
	b := h.binds("t", "a")
	if status, said := s.claims(0, "t/p/a", registration{Agent: "a", Peer: h.ID().String(), Proof: h.signs(b)}); status != 200 || !said.Bound {
		t.Fatalf("%d %+v", status, said)
	}
	if status, said := s.claims(0, "t/p/a", registration{Agent: "a", Peer: h.ID().String()}); status != 200 || !said.Bound || !h.speaks(0) {
		t.Errorf("a renewal while the binding stands: %d %+v", status, said)
	}
	peers := s.Node(0).Config().Presence.Peers
	found, err := peers.Find(t.Context(), h.ID().String())
	if err == nil {
		err = peers.Bind(t.Context(), h.ID().String(), *found.Bound, time.Millisecond) // it is over
	}
	if err != nil {
		t.Fatal(err)
	}
	await.True(t, "the binding is over", func() bool { return !h.speaks(0) })
	if status, said := s.claims(0, "t/p/a", registration{Agent: "a", Peer: h.ID().String()}); status != 200 || said.Bound || said.Why == "" || h.speaks(0) {
		t.Errorf("a renewal when it is over: %d %+v", status, said)
	}
}

// Without authentication nobody proves who they are, and a peer need not either; but one that has is believed more.
func TestWithoutAuthenticationAProofCountsMoreThanAClaim(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	h := s.enter()
	as := func() string {
		found, err := s.Node(0).Config().Presence.Peers.Find(t.Context(), h.ID().String())
		if err != nil || found.Bound == nil {
			t.Fatalf("%+v, %v", found, err)
		}
		return string(found.Bound.Agent)
	}
	for _, c := range []struct {
		about, agent string
		proven       bool
		bound        bool
		is           string
	}{
		{"a claim", "a", false, true, "a"},
		{"another claim", "b", false, true, "b"},
		{"a proof", "c", true, true, "c"},
		{"a claim against it", "a", false, false, "c"},
		{"a renewal of it", "c", false, true, "c"},
	} {
		r := registration{Agent: c.agent, Peer: h.ID().String()}
		if c.proven {
			r.Proof = h.signs(h.binds(agora.DefaultTenant, c.agent))
		}
		if status, said := s.claims(1, "", r); status != 200 || said.Bound != c.bound || as() != c.is {
			t.Errorf("%s: %d %+v, and the peer is %s, want bound %v, and %s", c.about, status, said, as(), c.bound, c.is)
		}
	}
}

// What was claimed while there was no authentication gives no rights once there is some.
func TestAClaimCountsForNothingWhereThereIsAuthentication(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: folk{}}}})
	for about, b := range map[string]presence.Bound{
		"a claim":                        {Tenant: "t", Agent: "a", By: []byte(`1{"dialect":"p2p","name":"p","tenant":"t","agents":["a"]}`), Claimed: true},
		"one that was bound by nobody":   {Tenant: "t", Agent: "a", By: []byte(`1{"dialect":"p2p","tenant":"t","any":true}`)},
		"one that is of another version": {Tenant: "t", Agent: "a", By: []byte(`2`)},
	} {
		h := s.enter()
		if err := s.Node(0).Config().Presence.Peers.Bind(t.Context(), h.ID().String(), b, time.Hour); err != nil {
			t.Fatal(err)
		}
		if h.speaks(0) {
			t.Errorf("%s has the peer speak", about)
		}
	}
}
