package p2p_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// agent is an agent at a WebSocket.
func (s *site) agent(k int, id, more string) *agoratest.Client {
	s.t.Helper()
	a := agoratest.Connect(s.t, agoratest.Direct{}, strings.TrimSuffix(s.URL(k), "/ws")+"/asks", "", nil)
	a.Send(`{"type":"agent.register","agent":{"id":` + agoratest.Quote(id) + more + `}}`)
	a.Expect(`{"type":"agent.registered"}`)
	return a
}

// asks asks for what a protocol answers to a request, and returns it.
func asks(t testing.TB, s network.Stream, request string) string {
	t.Helper()
	if _, err := io.WriteString(s, request); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(s)
	if err != nil {
		t.Fatalf("%q and then %v", b, err)
	}
	return string(b)
}

// edge opens a stream to edge k itself.
func (h *host) edge(k int, p string) network.Stream {
	h.s.t.Helper()
	ctx := await.Context(h.s.t)
	at := h.s.at(k)
	if err := h.Connect(ctx, at); err != nil {
		h.s.t.Fatal(err)
	}
	s, err := h.NewStream(ctx, at.ID, protocol.ID(p))
	if err != nil {
		h.s.t.Fatal(err)
	}
	return s
}

// posts posts a body to a path of edge k, and returns status and answer.
func (s *site) posts(k int, path, body string) (int, string) {
	s.t.Helper()
	r, err := http.Post(s.HTTP(k)+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	return answered(s.t, r)
}

func (s *site) gets(k int, path string) (int, string) {
	s.t.Helper()
	r, err := http.Get(s.HTTP(k) + path)
	if err != nil {
		s.t.Fatal(err)
	}
	return answered(s.t, r)
}

func answered(t testing.TB, r *http.Response) (int, string) {
	t.Helper()
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// listed is an agent that GET /peers lists.
type listed struct {
	AgentName string   `json:"agent_name"`
	PeerID    string   `json:"peer_id"`
	Addresses []string `json:"addresses"`
}

// peers returns what GET /peers of edge k lists.
func (s *site) peers(k int, query string) (all []listed) {
	s.t.Helper()
	status, b := s.gets(k, "/peers"+query)
	if err := json.Unmarshal([]byte(b), &all); err != nil || status != http.StatusOK {
		s.t.Fatalf("%d %s", status, b)
	}
	return all
}

func TestAnEdgeShowsTheClustersCardAndHandsRequestsToItsAgents(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	bob := s.agent(1, "bob", `,"skills":["greet"]`)
	h := s.enter()
	await.True(t, "bob is on the card", func() bool {
		var card struct {
			Agents int
			Skills []struct{ Name, Agent, Path string }
		}
		text := asks(t, h.edge(0, wire.CardProtocol), "whatever")
		if err := json.Unmarshal([]byte(text), &card); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return card.Agents == 1 && len(card.Skills) == 1 && card.Skills[0].Name == "greet" && card.Skills[0].Agent == "bob"
	})
	go func() {
		f := bob.Expect(`{"type":"message"}`)
		if got := f.Raw("payload"); !strings.Contains(got, `"method":"POST","path":"/greet/{name}","params":{"name":"Ada"},"input_data":{"a":1.0}`) {
			t.Errorf("bob is asked %s", got)
		}
		bob.Send(`{"type":"reply","to":"` + h.ID().String() + `","payload":{"request_id":` + f.Raw("request_id") + `,"hello":"Ada"}}`)
	}()
	got := asks(t, h.edge(0, wire.HandoffProtocol), `{"method":"post","path":"/agents/bob/greet/{name}","params":{"name":"Ada"},"input_data":{"a":1.0}}`)
	if !strings.Contains(got, `"hello":"Ada"`) {
		t.Errorf("bob's answer is %s", got)
	}
	for q, code := range map[string]int{
		``: 400, `[]`: 400, `{"path":"/x"`: 400, `{"method":"GET","path":"/nobody"}`: 404, `{"method":"GET","path":"/agents/carl/x"}`: 404,
	} {
		var f struct {
			Error string
			Code  int
		}
		text := asks(t, h.edge(1, wire.HandoffProtocol), q)
		if err := json.Unmarshal([]byte(text), &f); err != nil || f.Code != code || f.Error == "" {
			t.Errorf("%q is answered %s, want %d", q, text, code)
		}
	}
}

func TestAnAgentOfAnotherDialectIsAPeerThroughEveryEdge(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}, door: p2p.Config{ClusterKey: []byte("0123456789abcdef0123456789abcdef")}})
	s.agent(1, "bob", `,"skills":["greet"],"description":"greets"`)
	var id peer.ID
	await.True(t, "bob is listed", func() bool {
		all := s.peers(0, "?skill=greet")
		if len(all) != 1 {
			return false
		}
		var err error
		if id, err = peer.Decode(all[0].PeerID); err != nil || all[0].AgentName != "bob" {
			t.Fatalf("listed is %+v, %v", all, err)
		}
		return true
	})
	for k := range 2 {
		h := s.enter()
		st, err := h.opens(k, id, wire.CardProtocol)
		if err != nil {
			t.Fatalf("through edge %d: %v", k, err)
		}
		if got := asks(t, st, ""); !strings.Contains(got, `"id":"bob"`) || !strings.Contains(got, `"greets"`) {
			t.Errorf("through edge %d bob's card is %s", k, got)
		}
		_ = h.Close()
	}
}

func TestAPeerThatHasRegisteredIsAskedFromEveryDialect(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	h := s.enter()
	h.SetStreamHandler(wire.CardProtocol, func(st network.Stream) {
		_, _ = io.WriteString(st, `{ "name":"plain", "skills":[{"name":"greet"}] }`)
		_ = st.Close()
	})
	h.SetStreamHandler(wire.HandoffProtocol, func(st network.Stream) {
		q, err := wire.Read(st, 0)
		if err != nil || q.Path == "/fails" {
			_, _ = st.Write(wire.AppendFault(nil, wire.NewFault(405, "not by this method")))
		} else {
			_, _ = fmt.Fprintf(st, `{"method":%q,"path":%q, "n": 1.0}`, q.Method, q.Path)
		}
		_ = st.Close()
	})
	h.reserve(1)
	body := fmt.Sprintf(`{"agent_name":"plain","peer_id":%q,"addrs":[],"skills":["greet"]}`, h.ID())
	if status, answer := s.posts(0, "/register", body); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	for k := range 2 {
		if status, got := s.gets(k, "/agents/plain/card"); status != http.StatusOK || got != `{ "name":"plain", "skills":[{"name":"greet"}] }` {
			t.Errorf("from edge %d the card is %d %s", k, status, got)
		}
		if status, got := s.posts(k, "/agents/plain/handoff", `{"method":"get","path":"/greet"}`); status != http.StatusOK || strings.TrimSpace(got) != `{"method":"GET","path":"/greet", "n": 1.0}` {
			t.Errorf("from edge %d the answer is %d %s", k, status, got)
		}
		if status, got := s.posts(k, "/agents/plain/handoff", `{"method":"get","path":"/fails"}`); status == http.StatusOK {
			t.Errorf("from edge %d what fails is %d %s", k, status, got)
		}
	}
	anna := s.agent(0, "anna", "")
	anna.Send(`{"type":"send","id":"m","to":"plain","payload":"hello"}`)
	anna.Expect(`{"type":"error","request_id":"m","code":"INVALID_REQUEST"}`)
	anna.Send(`{"type":"card.get","id":"c","to":"plain"}`)
	anna.Expect(`{"type":"card","id":"c","from":"plain","card":{"name":"plain","skills":[{"name":"greet"}]}}`)
	anna.Send(`{"type":"handoff","id":"h","to":"plain","method":"POST","path":"/greet"}`)
	anna.Expect(`{"type":"handoff.result","id":"h","from":"plain","code":200,"body":{"method":"POST","path":"/greet","n":1.0}}`)
	anna.Send(`{"type":"handoff","id":"f","to":"plain","method":"POST","path":"/fails"}`)
	anna.Expect(`{"type":"handoff.result","id":"f","from":"plain","code":405,"error":{"code":"INVALID_REQUEST","message":"not by this method"}}`)
	other := s.enter()
	body = fmt.Sprintf(`{"agent_name":"plain","peer_id":%q,"addrs":[]}`, other.ID())
	if status, answer := s.posts(1, "/register", body); status != http.StatusConflict {
		t.Errorf("another peer is registered: %d %s", status, answer)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the other peer may have the id", func() bool {
		status, _ := s.posts(1, "/register", body)
		return status == http.StatusOK
	})
	for bad, status := range map[string]int{
		`{"agent_name":"x","peer_id":"12D3","addrs":[]}`:                                                               400,
		fmt.Sprintf(`{"agent_name":"x","peer_id":%q,"addrs":["/ip4/1"]}`, other.ID()):                                  400,
		fmt.Sprintf(`{"agent_name":"x","peer_id":%q,"addrs":["/ip4/127.0.0.1/tcp/1/p2p/%s"]}`, other.ID(), s.at(0).ID): 400,
		fmt.Sprintf(`{"agent_name":"x","peer_id":%q,"addrs":["/ip4/169.254.169.254/tcp/80"]}`, other.ID()):             403,
		fmt.Sprintf(`{"agent_name":"x","peer_id":%q,"addrs":[],"ttl":1}`, other.ID()):                                  400,
	} {
		if got, answer := s.posts(0, "/register", bad); got != status {
			t.Errorf("%s is answered %d %s, want %d", bad, got, answer, status)
		}
	}
}
