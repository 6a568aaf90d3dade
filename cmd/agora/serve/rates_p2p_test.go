package serve

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	pbv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// edgePeer is an edge as a peer sees it.
func (e *edgeServer) edgePeer(t *testing.T) peer.AddrInfo {
	t.Helper()
	at, err := peer.AddrInfoFromString(e.doors.peerAddress())
	if err != nil {
		t.Fatal(err)
	}
	return *at
}

// edgesPeer is a peer of libp2p that is connected to an edge.
type edgesPeer struct {
	*p2phost.Host
	key crypto.PrivKey
	t   *testing.T
	at  peer.AddrInfo // the edge
}

// comes makes a peer that nobody knows, and that ends with the test.
func (e *edgeServer) comes(t *testing.T) *edgesPeer {
	t.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2phost.New(p2phost.Config{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	p := &edgesPeer{h, key, t, e.edgePeer(t)}
	if err := h.Connect(await.Context(t), p.at); err != nil {
		t.Fatal(err)
	}
	return p
}

// registers makes the peer an agent of a token's at a URL, by the word of its key.
func (p *edgesPeer) registers(url string, trust *tls.Config, token, tenant, agent string) {
	p.t.Helper()
	b := wire.Binding{Tenant: tenant, Agent: agora.AgentID(agent), Edge: p.at.ID.String(), Peer: p.ID().String(), Time: time.Now().UnixMilli()}
	signature, err := p.key.Sign(b.Statement())
	if err != nil {
		p.t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"agent_name": agent, "peer_id": b.Peer, "proof": wire.Proof{Edge: b.Edge, Time: b.Time, Signature: signature}})
	if err != nil {
		p.t.Fatal(err)
	}
	if status, said := answerTo(p.t, trust, http.MethodPost, url, token, string(body)); status != http.StatusOK || !strings.Contains(said, `"bound":true`) {
		p.t.Fatalf("registration of %s is %d %s", agent, status, said)
	}
}

// answerTo asks an edge over HTTP, and returns what it says.
func answerTo(t *testing.T, trust *tls.Config, method, url, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(await.Context(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	over := &http.Transport{DisableKeepAlives: true, TLSClientConfig: trust}
	a, err := over.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	said, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(said)
}

// asks says something by a protocol to the edge, and returns what is answered.
func (p *edgesPeer) asks(of protocol.ID, what []byte) []byte {
	p.t.Helper()
	s, err := p.NewStream(await.Context(p.t), p.at.ID, of)
	if err != nil {
		p.t.Fatal(err)
	}
	defer s.Reset()
	_ = s.SetDeadline(time.Now().Add(await.Long)) // what is over fails below
	if _, err := s.Write(what); err != nil {
		p.t.Fatal(err)
	}
	if of == proto.ProtoIDv2Hop { // whose answer is a message, and a circuit continues behind it
		in := util.NewDelimitedReader(s, 4096)
		defer in.Close()
		var msg pbv2.HopMessage
		if err := in.ReadMsg(&msg); err != nil {
			p.t.Fatal(err)
		}
		return []byte(msg.GetStatus().String())
	}
	_ = s.CloseWrite() // an answer may have ended it
	b, err := io.ReadAll(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// hops says a message to the relay, about a peer unless that is empty.
func (p *edgesPeer) hops(of pbv2.HopMessage_Type, to peer.ID) {
	p.t.Helper()
	m := &pbv2.HopMessage{Type: of.Enum()}
	if to != "" {
		m.Peer = util.PeerInfoToPeerV2(peer.AddrInfo{ID: to})
	}
	var b bytes.Buffer
	if err := util.NewDelimitedWriter(&b).WriteMsg(m); err != nil {
		p.t.Fatal(err)
	}
	p.asks(proto.ProtoIDv2Hop, b.Bytes())
}

// ratedPeer is a peer that is the agent "speaker" of a tenant that has said nothing yet, and in which there is an agent
// of another dialect.
type ratedPeer struct {
	*edgesPeer
	limited func() bool
	other   peer.ID // of that agent
}

// peerSays is what a peer says to an edge, by its protocol; by that and the type of the message where it is one of a
// relay. "To an agent" is a circuit to an agent of another dialect, whose peer the edge is itself.
var peerSays = map[string]func(*ratedPeer){
	wire.CardProtocol: func(p *ratedPeer) { p.edgesPeer.asks(wire.CardProtocol, nil) },
	wire.HandoffProtocol: func(p *ratedPeer) {
		p.edgesPeer.asks(wire.HandoffProtocol, []byte(`{"method":"GET","path":"/agents/nobody/x"}`))
	},
	proto.ProtoIDv2Hop + " RESERVE":          func(p *ratedPeer) { p.hops(pbv2.HopMessage_RESERVE, "") },
	proto.ProtoIDv2Hop + " CONNECT":          func(p *ratedPeer) { p.hops(pbv2.HopMessage_CONNECT, p.at.ID) },
	proto.ProtoIDv2Hop + " CONNECT to agent": func(p *ratedPeer) { p.hops(pbv2.HopMessage_CONNECT, p.other) },
}

// uncountedProtocols ask nothing of the cluster: they are libp2p's own, which every peer answers.
var uncountedProtocols = []protocol.ID{ping.ID, identify.ID, identify.IDPush}

// TestEverythingThatAPeerSaysCounts says to an edge, by each protocol that the edge itself says it has, and by each
// message to its relay, whatever it takes: who says it has said something then.
func TestEverythingThatAPeerSaysCounts(t *testing.T) {
	atEachLevel(t, func(e *rated) {
		limits := e.node.Limits()
		e.node.SetLimits(admission.Limits{}) // what is to be there first counts for nothing
		peers := map[string]*ratedPeer{}
		for _, what := range slices.Sorted(maps.Keys(peerSays)) {
			peers[what] = e.peer()
		}
		for _, p := range e.protocols() {
			if peerSays[p] == nil {
				e.t.Errorf("nothing is known to be said by %s", p)
			}
		}
		e.node.SetLimits(limits)
		for _, what := range slices.Sorted(maps.Keys(peerSays)) {
			p := peers[what]
			for range tooMany {
				if p.limited() {
					e.t.Errorf("%s is too much before it was said %d times", what, tooMany)
				}
				peerSays[what](p)
			}
			if !p.limited() {
				e.t.Errorf("%s, said %d times, counts for nothing", what, tooMany)
			}
		}
	})
}

// protocols returns by what an edge is spoken to.
func (e *rated) protocols() (all []string) {
	e.t.Helper()
	p := e.comes(e.t)
	offered, err := p.Peerstore().GetProtocols(p.at.ID)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, of := range offered {
		switch {
		case slices.Contains(uncountedProtocols, of):
		case of == proto.ProtoIDv2Hop:
			for _, name := range pbv2.HopMessage_Type_name {
				if name != pbv2.HopMessage_STATUS.String() { // which is what a relay answers
					all = append(all, proto.ProtoIDv2Hop+" "+name)
				}
			}
		default:
			all = append(all, string(of))
		}
	}
	if len(all) < 4 {
		e.t.Fatalf("peers may speak by %q", all)
	}
	return all
}

// peer makes such a peer.
func (e *rated) peer() *ratedPeer {
	e.t.Helper()
	token, limited := e.speaker()
	p := &ratedPeer{edgesPeer: e.comes(e.t), limited: limited}
	at := "http://" + e.ports.public.addr()
	p.registers(at+"/register", nil, token, "t"+token[1:], "speaker")
	if status, said := answerTo(e.t, nil, http.MethodPut, at+"/agents/plain", token, `{}`); status >= 300 {
		e.t.Fatalf("%d %s", status, said)
	}
	await.True(e.t, "the other agent is a peer", func() bool {
		_, said := answerTo(e.t, nil, http.MethodGet, at+"/peers?agent_name=plain", token, "")
		var all []struct {
			ID peer.ID `json:"peer_id"`
		}
		if err := json.Unmarshal([]byte(said), &all); err != nil || len(all) != 1 {
			return false
		}
		p.other = all[0].ID
		return true
	})
	return p
}
