package p2p_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// rules returns a policy.
func rules(t *testing.T, text string) *policy.Policy {
	t.Helper()
	r, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p := new(policy.Policy)
	p.Set(r)
	return p
}

// Whom a policy does not let speak to an agent does not reach its peer under another agent's name either.
func TestAPeerIsNotReachedUnderANameThatItHasNotProven(t *testing.T) {
	t.Parallel()
	p := rules(t, `rules: [{name: rest, who: {names: ['*']}, agents: ['*'], send: ['mall', 'alice-*'], directory: true, relay: true}, {name: friends, who: {names: [alice, friend]}, agents: ['*'], send: ['*'], directory: true, relay: true}]`)
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}, Policy: p}}, door: p2p.Config{}})
	h := s.enter()
	ran := make(chan struct{}, 16)
	h.SetStreamHandler(wire.HandoffProtocol, func(st network.Stream) {
		ran <- struct{}{}
		_, _ = io.WriteString(st, `"ran"`)
		_ = st.Close()
	})
	h.SetStreamHandler(wire.CardProtocol, func(st network.Stream) {
		ran <- struct{}{}
		_, _ = io.WriteString(st, `{"name":"alice"}`)
		_ = st.Close()
	})
	if status := s.registers("t/alice/alice,alice-*", "alice", h); status != http.StatusOK {
		t.Fatalf("registration is %d", status)
	}
	h.reserve(1)
	for token, agent := range map[string]string{"t/mall/mall": "mall", "u/zed/zed": "zed", "t/alice/alice,alice-*": "alice-two"} {
		if status, said := s.claims(0, token, registration{Agent: agent, Peer: h.ID().String()}); status != http.StatusOK || said.Bound {
			t.Fatalf("claim of %s: %d %+v", agent, status, said)
		}
	}
	for _, c := range []struct {
		token, to string
		reaches   bool
	}{
		{"t/friend/f", "alice", true}, {"t/bob/bob", "alice", false},
		{"t/bob/bob", "mall", false}, {"t/mall/mall", "mall", false}, {"t/friend/f", "mall", true},
		{"u/zed/zed", "zed", false}, {"u/friend/f", "zed", false},
		{"t/bob/bob", "alice-two", false}, {"t/friend/f", "alice-two", true},
	} {
		for k := range 2 {
			as := "?as=" + c.token[strings.LastIndex(c.token, "/")+1:]
			status, answer := s.asked(k, c.token, http.MethodPost, "/agents/"+c.to+"/handoff"+as, map[string]string{"method": "GET", "path": "/x"})
			if reached := status == 200 && answer != ""; reached != c.reaches {
				t.Errorf("%s hands off to %s at edge %d: %d %s, want it reached %v", c.token, c.to, k, status, answer, c.reaches)
			}
			if c.to == "alice" {
				continue // of a card nobody is asked who may send
			}
			if status, answer := s.asked(k, c.token, http.MethodGet, "/agents/"+c.to+"/card"+as, nil); (status == 200) != c.reaches {
				t.Errorf("%s asks for the card of %s at edge %d: %d %s, want it reached %v", c.token, c.to, k, status, answer, c.reaches)
			}
		}
	}
	reached := len(ran)
	if reached != 2*(1+2+2) {
		t.Errorf("the peer was asked %d times", reached)
	}
}

func TestAnEdgeSaysWhichPeersMaySpeakToAnAgent(t *testing.T) {
	t.Parallel()
	p := rules(t, `rules: [{name: rest, who: {names: ['*']}, agents: ['*'], send: ['bob'], directory: true, relay: true}, {name: friends, who: {names: [friend]}, agents: ['*'], send: ['*'], directory: true, relay: true}]`)
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}, Policy: p}}})
	friend, rest, other, nobody, claimed := s.enter(), s.enter(), s.enter(), s.enter(), s.enter()
	for h, who := range map[*host][2]string{friend: {"t/friend/f", "f"}, rest: {"t/rest/r", "r"}, other: {"u/friend/f", "f"}} {
		if status := s.registers(who[0], who[1], h); status != http.StatusOK {
			t.Fatalf("registration of %v: %d", who, status)
		}
	}
	s.claims(0, "t/friend/g", registration{Agent: "g", Peer: claimed.ID().String()})
	asks := func(k int, token, agent string, h *host) (int, string) {
		return s.asked(k, token, http.MethodGet, "/p2p/access?peer_id="+h.ID().String()+"&agent_name="+agent, nil)
	}
	for k := range 2 {
		for about, c := range map[string]struct {
			h       *host
			agent   string
			allowed bool
		}{
			"whom the policy lets": {friend, "alice", true}, "whom it does not": {rest, "alice", false}, "whom it lets speak to that": {rest, "bob", true},
			"of another tenant": {other, "alice", false}, "bound to nobody": {nobody, "alice", false}, "claimed alone": {claimed, "alice", false},
		} {
			status, answer := asks(k, "t/p/alice,bob", c.agent, c.h)
			if status != 200 || strings.Contains(answer, `"allowed":true`) != c.allowed || strings.Contains(answer, `"why":"`) == c.allowed {
				t.Errorf("%s at edge %d: %d %s, want allowed %v", about, k, status, answer, c.allowed)
			}
		}
		for token, want := range map[string]int{"": 401, "t/q/carl": 403, "u/p/alice": 200} {
			if status, answer := asks(k, token, "alice", friend); status != want || strings.Contains(answer, `"allowed":true`) {
				t.Errorf("who presents %q is told %d %s, want %d and nothing of the kind", token, status, answer, want)
			}
		}
		for query, want := range map[string]int{"?peer_id=x&agent_name=alice": 400, fmt.Sprintf("?peer_id=%s&agent_name=", friend.ID()): 400} {
			if status, answer := s.asked(k, "t/p/alice", http.MethodGet, "/p2p/access"+query, nil); status != want {
				t.Errorf("%s is answered %d %s", query, status, answer)
			}
		}
	}
}

// There is one door by which an agent gets a peer id: no other one takes it from who registers.
func TestNoOtherRegistrationGivesAnAgentAPeer(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	h := s.enter()
	said := fmt.Sprintf(`"peer":%q,"peer_id":%[1]q,"dialect":"p2p","addrs":[%q],"metadata":{"peer":%[1]q,"peer_id":%[1]q}`, h.ID(), h.s.at(0).Addrs[0])
	s.agent(0, "socket", ","+said)
	if status, answer := s.asked(0, "", http.MethodPut, "/agents/plain", json.RawMessage(`{`+said+`}`)); status >= 500 {
		t.Fatalf("%d %s", status, answer)
	}
	for _, id := range []string{"socket", "plain"} {
		status, answer := s.gets(0, "/agents/"+id)
		var card struct{ Peer, Dialect string }
		if status == http.StatusOK && json.Unmarshal([]byte(answer), &card) != nil || card.Peer != "" || card.Dialect == wire.Dialect {
			t.Errorf("%s is %d %s", id, status, answer)
		}
	}
	found, err := s.Node(0).Config().Presence.Peers.Find(t.Context(), h.ID().String())
	if err != nil || found.Bound != nil {
		t.Errorf("the peer is bound: %+v, %v", found.Bound, err)
	}
}

// A peer that has proven nothing is reached nevertheless where its agent says that it is, as long as it is nobody
// else's.
func TestAnAgentIsReachedAtAPeerThatItHasOnlyNamed(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}}}})
	h := s.listens()
	h.SetStreamHandler(wire.HandoffProtocol, func(st network.Stream) {
		_, _ = io.WriteString(st, `"ran"`)
		_ = st.Close()
	})
	at := h.Addrs()[0].String()
	for _, token := range []string{"t/p/a", "u/q/a"} {
		if status, said := s.claims(0, token, registration{Agent: "a", Peer: h.ID().String(), Addrs: []string{at}}); status != http.StatusOK || said.Bound {
			t.Fatalf("%s: %d %+v", token, status, said)
		}
		for k := range 2 {
			if status, answer := s.asked(k, token, http.MethodPost, "/agents/a/handoff?as=a", map[string]string{"method": "GET", "path": "/x"}); status != http.StatusOK || !strings.Contains(answer, `"ran"`) {
				t.Errorf("%s at edge %d: %d %s", token, k, status, answer)
			}
		}
	}
	if status := s.registers("t/p/a", "a", h); status != http.StatusOK {
		t.Fatalf("registration is %d", status)
	}
	for token, reaches := range map[string]bool{"t/p/a": true, "u/q/a": false} {
		status, answer := s.asked(1, token, http.MethodPost, "/agents/a/handoff?as=a", map[string]string{"method": "GET", "path": "/x"})
		if (status == http.StatusOK) != reaches {
			t.Errorf("when the peer has proven whose it is, %s is answered %d %s", token, status, answer)
		}
	}
}
