package p2p_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
	manet "github.com/multiformats/go-multiaddr/net"
	multistream "github.com/multiformats/go-multistream"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/p2p"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// dials opens a connection of TCP to edge k.
func (s *site) dials(k int) net.Conn {
	s.t.Helper()
	_, address, err := manet.DialArgs(s.at(k).Addrs[0])
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// says opens connections to edge 0 that say something, and no more.
func (s *site) says(n int, what string) {
	s.t.Helper()
	for range n {
		if _, err := io.WriteString(s.dials(0), what); err != nil {
			s.t.Fatal(err)
		}
	}
}

// bare opens a connection to edge k that is secured and muxed, of a peer that is no more than that.
func (s *site) bare(k int, key crypto.PrivKey) (transport.CapableConn, error) {
	s.t.Helper()
	up, err := p2phost.Upgrader(key, &network.NullResourceManager{}, nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := manet.WrapNetConn(s.dials(k))
	if err != nil {
		s.t.Fatal(err)
	}
	return up.Upgrade(await.Context(s.t), nil, raw, network.DirOutbound, s.at(k).ID, &network.NullScope{})
}

// strangers opens connections to edge 0 of as many peers that nobody knows. Some may be closed by then.
func (s *site) strangers(n int) (all []transport.CapableConn) {
	s.t.Helper()
	var mu sync.Mutex
	var each sync.WaitGroup
	slots := make(chan struct{}, 16)
	for range n {
		slots <- struct{}{}
		each.Go(func() {
			defer func() { <-slots }()
			c, err := s.bare(0, s.key())
			if err != nil {
				return // there was no place
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, c)
		})
	}
	each.Wait()
	s.t.Cleanup(func() {
		for _, c := range all {
			_ = c.Close()
		}
	})
	return all
}

func (s *site) key() crypto.PrivKey {
	s.t.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// asksOf opens streams of a protocol over connections, and says something on each.
func asksOf(t *testing.T, all []transport.CapableConn, n int, protocol, what string) (streams []network.MuxedStream) {
	t.Helper()
	for _, c := range all {
		for range n {
			s, err := c.OpenStream(await.Context(t))
			if err != nil {
				break // it was closed
			}
			_ = s.SetDeadline(time.Now().Add(time.Minute)) // it may be over
			if protocol != "" && multistream.SelectProtoOrFail(protocol, s) != nil {
				break
			}
			go func() { _, _ = io.WriteString(s, what) }() // as much as goes in
			streams = append(streams, s)
		}
	}
	return streams
}

// noise is what a peer says first, up to a message of Noise of so many bytes.
func noise(n uint16) string {
	return "\x13/multistream/1.0.0\n\x07/noise\n" + string(binary.BigEndian.AppendUint16(nil, n))
}

// unfinished is what strangers begin at the port of libp2p and don't end. Anyone who has credentials is served
// nevertheless.
var unfinished = []struct {
	name  string
	door  p2p.Config
	limit admission.Limits
	begin func(t *testing.T, s *site)
}{
	{name: "silent connections", begin: func(_ *testing.T, s *site) { s.says(300, "") }},
	{name: "half a line of multistream", begin: func(_ *testing.T, s *site) { s.says(300, "\x13/multi") }},
	{name: "half a handshake", begin: func(_ *testing.T, s *site) { s.says(300, noise(2000)+strings.Repeat("x", 1000)) }},
	{name: "half a request of HTTP", begin: func(_ *testing.T, s *site) { s.says(300, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nX: ") }},
	{name: "silent connections of one address", limit: admission.Limits{PerIP: 8, HandshakesPerIP: 1000}, begin: func(_ *testing.T, s *site) { s.says(300, "") }},
	{name: "idle peers", door: p2p.Config{Connections: 60}, begin: func(_ *testing.T, s *site) { s.strangers(70) }},
	{name: "idle peers of one address", limit: admission.Limits{PerIP: 8}, begin: func(_ *testing.T, s *site) { s.strangers(70) }},
	{name: "many idle peers", begin: func(_ *testing.T, s *site) { s.strangers(strangersAtOnce) }},
	{name: "handoffs", begin: func(t *testing.T, s *site) {
		asksOf(t, s.strangers(8), 40, wire.HandoffProtocol, `{"method":"GET","path":"/a","input_data":"`+strings.Repeat("x", 1<<20))
	}},
	{name: "cards", begin: func(t *testing.T, s *site) {
		asksOf(t, s.strangers(8), 40, wire.CardProtocol, strings.Repeat("x", 1<<20))
	}},
	{name: "protocols of streams", begin: func(t *testing.T, s *site) { asksOf(t, s.strangers(8), 300, "", "\x13/multi") }},
	{name: "streams that say nothing", begin: func(t *testing.T, s *site) { asksOf(t, s.strangers(8), 300, "", "") }},
	{name: "messages to the relay", begin: func(t *testing.T, s *site) {
		asksOf(t, s.strangers(8), 40, "/libp2p/circuit/relay/0.2.0/hop", "\xff\x1f"+strings.Repeat("x", 4000))
	}},
	{name: "pushes of what a peer is", begin: func(t *testing.T, s *site) {
		asksOf(t, s.strangers(8), 40, "/ipfs/id/push/1.0.0", "\xff\x3f"+strings.Repeat("x", 8000))
	}},
}

func TestWhatStrangersLeaveUnfinishedShutsNobodyOut(t *testing.T) {
	t.Parallel()
	for _, row := range unfinished {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: folk{}, Limits: row.limit}}, door: row.door})
			h := s.enter()
			if status := s.registers("t/p/a", "a", h); status != http.StatusOK {
				t.Fatalf("registration is %d", status)
			}
			row.begin(t, s)
			if got := asks(t, h.edge(0, wire.CardProtocol), ""); !strings.Contains(got, `"agents"`) {
				t.Errorf("who is bound is shown %s", got)
			}
			budget, _, _ := s.Node(0).Shedder().Strangers().Limits()
			if held := s.Node(0).Shedder().Strangers().Held(); held > budget {
				t.Errorf("strangers hold %d bytes, and may hold %d", held, budget)
			}
			if held := s.door(0).Stats().Held.Load(); held > budget {
				t.Errorf("%d bytes are held, and strangers may hold %d", held, budget)
			}
		})
	}
}

// Anyone who asks comes before what is asked: of a stranger's request nothing is read.
func TestAStrangerIsRefusedUnread(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: folk{}}}})
	for _, protocol := range []string{wire.HandoffProtocol, wire.CardProtocol} {
		st := s.enter().edge(0, protocol)
		if _, err := io.WriteString(st, `{"method":"GET","path":"/a","input_data":"`+strings.Repeat("x", 100_000)); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(st); err != nil || !bytes.Contains(b, []byte(`"code":403`)) { // while its request continues
			t.Errorf("%s is answered %s, %v", protocol, b, err)
		}
		_ = st.Reset()
	}
}

// What somebody has begun who may speak counts, and is bounded, by however many connections: others are served
// meanwhile.
func TestUnfinishedRequestsOfAPeerAreBounded(t *testing.T) {
	t.Parallel()
	const queued = 64 << 20
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: folk{}, Limits: admission.Limits{Queued: queued}}}})
	h := s.enter()
	if status := s.registers("u/q/b", "b", h); status != http.StatusOK {
		t.Fatalf("registration is %d", status)
	}
	var writes sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer writes.Wait()
	defer cancel()
	for _, id := range []string{"a1", "a2", "a3", "a4", "a5"} {
		hog, full := s.enter(), make(chan string, 30)
		if status := s.registers("t/p/a1,a2,a3,a4,a5", id, hog); status != http.StatusOK {
			t.Fatalf("registration is %d", status)
		}
		for range cap(full) {
			st := hog.edge(0, wire.HandoffProtocol)
			defer context.AfterFunc(ctx, func() { _ = st.Reset() })()
			writes.Go(func() {
				_, _ = io.WriteString(st, `{"method":"GET","path":"/a","input_data":"`+strings.Repeat("x", 4<<20)) // it may be refused
			})
			writes.Go(func() {
				if b, err := io.ReadAll(st); err == nil {
					full <- string(b)
				}
			})
		}
		if got := await.Recv(t, "a request is refused", full); !strings.Contains(got, `"code":500`) || !strings.Contains(got, "holds more") {
			t.Errorf("what is too much is answered %s", got)
		}
		if held := s.door(0).Stats().Held.Load(); held > queued*5/4 {
			t.Errorf("%d bytes are held of one principal, of %d that there may be", held, queued)
		}
		if got := asks(t, h.edge(0, wire.HandoffProtocol), `{"method":"GET","path":"/agents/nobody/x"}`); !strings.Contains(got, `"code":404`) {
			t.Errorf("another one is answered %s", got)
		}
	}
	cancel()
	writes.Wait()
	await.True(t, "nothing is held any more", func() bool { return s.door(0).Stats().Held.Load() == 0 })
}

// A peer that is bound while it is connected is a stranger no more: strangers that come don't push it out.
func TestAStrangerThatIsBoundIsNoStranger(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}}}, door: p2p.Config{Connections: 16}})
	h := s.enter()
	if got := asks(t, h.edge(1, wire.CardProtocol), ""); !strings.Contains(got, `"code":403`) {
		t.Fatalf("a stranger is shown %s", got)
	}
	if status := s.registers("t/p/a", "a", h); status != http.StatusOK { // at the other edge
		t.Fatalf("registration is %d", status)
	}
	if got := asks(t, h.edge(1, wire.CardProtocol), ""); !strings.Contains(got, `"agents"`) {
		t.Errorf("who has just been bound is shown %s", got)
	}
	await.True(t, "it is a stranger no more", func() bool { return s.door(1).Stats().Strangers.Load() == 0 })
	before := h.Network().ConnsToPeer(s.at(1).ID)
	for range 20 {
		c, err := s.bare(1, s.key())
		if err == nil {
			defer c.Close()
		}
	}
	if after := h.Network().ConnsToPeer(s.at(1).ID); len(after) != 1 || after[0] != before[0] {
		t.Errorf("it had %v and has %v", before, after)
	}
}

// A registration that ends takes the place of its peer's connection with it.
func TestAPeerWhoseRegistrationIsOverIsAStranger(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: folk{}}}})
	h := s.enter()
	if status := s.registers("t/p/a", "a", h); status != http.StatusOK {
		t.Fatalf("registration is %d", status)
	}
	asks(t, h.edge(0, wire.CardProtocol), "")
	if n := s.door(0).Stats().Strangers.Load(); n != 0 {
		t.Fatalf("%d strangers, where all are bound", n)
	}
	r, err := http.NewRequestWithContext(await.Context(t), http.MethodDelete, s.HTTP(0)+"/agents/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer t/p/a")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if status, body := answered(t, resp); status >= 300 {
		t.Fatalf("%d %s", status, body)
	}
	await.True(t, "it is a stranger", func() bool {
		asks(t, h.edge(0, wire.CardProtocol), "")
		return s.door(0).Stats().Strangers.Load() == 1
	})
}

// Without authentication everybody is believed, and yet those that ask nothing make room.
func TestSilentPeersMakeRoomWithoutAuthentication(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}, door: p2p.Config{Connections: 10}})
	s.strangers(20)
	h := s.enter()
	if got := asks(t, h.edge(0, wire.CardProtocol), ""); !strings.Contains(got, `"agents"`) {
		t.Errorf("who speaks is shown %s", got)
	}
}
