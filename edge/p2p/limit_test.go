package p2p_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

func TestARelayHasLimits(t *testing.T) {
	t.Parallel()
	s := open(t, setup{
		Options: agoratest.Options{Edges: 2},
		door:    p2p.Config{Relay: p2p.Relay{Reservations: 2, Circuits: 2, Data: 64 << 10}},
	})
	to := s.enter()
	to.echoes()
	to.reserve(0)
	s.enter().reserve(0)
	if err := s.enter().tries(0); err == nil || !strings.Contains(err.Error(), "RESERVATION_REFUSED") {
		t.Errorf("one reservation too many: %v", err)
	}
	for k := range 2 {
		a, b := s.enter(), s.enter()
		one, _ := a.kept(k, to.ID()), b.kept(k, to.ID())
		if _, err := s.enter().opens(k, to.ID(), echo); err == nil || !strings.Contains(err.Error(), "RESOURCE_LIMIT_EXCEEDED") {
			t.Errorf("one circuit too many through edge %d: %v", k, err)
		}
		go func() { _, _ = one.Write(make([]byte, 128<<10)) }() // it is to fail
		if n, err := io.Copy(io.Discard, one); err == nil {
			t.Errorf("through edge %d a circuit ends behind %d bytes", k, n)
		}
		_, _ = a.Close(), b.Close()
		await.True(t, "there is room again", func() bool {
			h := s.enter()
			defer h.Close()
			_, err := h.opens(k, to.ID(), echo)
			return err == nil
		})
		await.True(t, "those are over", func() bool { return s.door(0).Stats().Here.Load() == 0 && s.door(1).Stats().Across.Load() == 0 })
	}
}

func TestAnEdgeWithoutARelayServesItsOwnAgentsAlone(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}, door: p2p.Config{Relay: p2p.Relay{Off: true}}})
	if err := s.enter().tries(0); err == nil || !strings.Contains(err.Error(), "PERMISSION_DENIED") {
		t.Errorf("a reservation: %v", err)
	}
	if _, err := s.enter().opens(0, s.enter().ID(), echo); err == nil || !strings.Contains(err.Error(), "NO_RESERVATION") {
		t.Errorf("a circuit: %v", err)
	}
}

func TestWhoDrainsTakesNobodyAndLetsGoOfAll(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	to := s.enter()
	to.echoes()
	to.reserve(0)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	s.door(0).Drain(ctx)
	for k := range 2 {
		if all := s.door(k).Edges(t.Context()).Edges; len(all) != 1 || all[0].PeerID != s.at(1).ID.String() {
			t.Errorf("edge %d names as edges %v, want that alone which does not drain", k, all)
		}
	}
	await.True(t, "the peer was let go", func() bool { return len(to.Network().ConnsToPeer(s.at(0).ID)) == 0 })
	if err := s.enter().tries(0); err == nil || !strings.Contains(err.Error(), "RESERVATION_REFUSED") {
		t.Errorf("a reservation: %v", err)
	}
	to.reserve(1)
	st, err := s.enter().opens(1, to.ID(), echo)
	if err != nil || string(said(t, st, []byte("x"))) != "x" {
		t.Errorf("through the other edge: %v", err)
	}
}

// folk takes any token "tenant/name/ids" for a principal of that tenant and name, which may be those agents, with
// commas between them.
type folk struct{}

// Authenticate returns the principal that the token names.
func (folk) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	words := strings.Split(c.Token, "/")
	if len(words) != 3 {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "a token is tenant/name/ids")
	}
	return edge.Principal{Tenant: words[0], Name: words[1], Agents: strings.Split(words[2], ",")}, nil
}

func TestOnlyBoundPeersOfOneTenantMeet(t *testing.T) {
	t.Parallel()
	rules, err := policy.Parse([]byte("rules: [{name: one, who: {names: [p, q]}, agents: ['*'], send: ['*'], directory: true, relay: true}, {name: two, who: {names: [dull]}, agents: ['*'], directory: true}]"))
	if err != nil {
		t.Fatal(err)
	}
	var p policy.Policy
	p.Set(rules)
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}, Policy: &p}}})
	to, friend, stranger, dull, nobody := s.enter(), s.enter(), s.enter(), s.enter(), s.enter()
	to.echoes()
	for h, who := range map[*host][2]string{to: {"t/p/a", "a"}, friend: {"t/q/b", "b"}, stranger: {"u/p/a", "a"}, dull: {"t/dull/d", "d"}} {
		if status := s.registers(who[0], who[1], h); status != http.StatusOK {
			t.Fatalf("registration of %v: %d", who, status)
		}
	}
	if status, said := s.claims(0, "t/q/c", registration{Agent: "c", Peer: to.ID().String()}); status != http.StatusOK || said.Bound {
		t.Errorf("another's peer is registered: %d %+v", status, said)
	}
	if status := s.registers("t/q/b", "a", nobody); status != http.StatusForbidden {
		t.Errorf("another's id is registered: %d", status)
	}
	to.reserve(1)
	for name, h := range map[string]*host{"may not": dull, "is bound to nobody": nobody} {
		if err := h.tries(0); err == nil || !strings.Contains(err.Error(), "PERMISSION_DENIED") {
			t.Errorf("a reservation by who %s: %v", name, err)
		}
	}
	for k := range 2 {
		friend.kept(k, to.ID())
		for h, status := range map[*host]string{stranger: "NO_RESERVATION", dull: "PERMISSION_DENIED", nobody: "PERMISSION_DENIED"} {
			if _, err := h.opens(k, to.ID(), echo); err == nil || !strings.Contains(err.Error(), status) {
				t.Errorf("through edge %d: %v, want %s", k, err, status)
			}
		}
	}
	if got := asks(t, nobody.edge(0, "/ai-agent/card/1.0.0"), ""); !strings.Contains(got, `"code":403`) {
		t.Errorf("who is bound to nobody is shown %s", got)
	}
}
