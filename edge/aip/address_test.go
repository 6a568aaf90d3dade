package aip_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/agora-relay/agora/client/aip"
	"github.com/agora-relay/agora/edge"
	dialing "github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// world is a network of which the test says what names stand for, and which node answers at an address. At all others a
// node answers as well.
type world struct {
	mu    sync.Mutex // guards the fields below
	names map[string][]string
	at    map[string]string // where the node of an address really is
}

func (w *world) resolve(_ context.Context, host string) (all []netip.Addr, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ip := range w.names[host] {
		all = append(all, netip.MustParseAddr(ip))
	}
	if all == nil {
		return nil, &net.DNSError{Name: host, IsNotFound: true}
	}
	return all, nil
}

func (w *world) means(host string, ips ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[host] = ips
}

// connect connects to the node that an address is said to have, and else to the first one; the connection says that it
// has reached the address.
func (w *world) connect(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	to := w.at[address]
	if to == "" {
		to = w.at[""]
	}
	w.mu.Unlock()
	c, err := new(net.Dialer).DialContext(ctx, network, to)
	if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(address)
	return &worldConn{c, net.TCPAddrFromAddrPort(at)}, err
}

// worldConn is a connection that says to have reached an address.
type worldConn struct {
	net.Conn
	at net.Addr
}

// RemoteAddr implements net.Conn.
func (c *worldConn) RemoteAddr() net.Addr { return c.at }

// openIn opens a site of two edges, in a world whose addresses are those of a node.
func openIn(t *testing.T, w *world, n *node) *site {
	t.Helper()
	w.at[""] = n.addr
	var deny dialing.List
	return open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{
		Auth: folk{}, Dialer: dialing.New(dialing.Config{Deny: &deny, Resolve: w.resolve, Connect: w.connect}),
	}}})
}

// Each spelling of an address, and each other address that reaches the same, is the first one's, for other ids, at
// other edges and in other tenants.
func TestAnAddressIsOneNodesHoweverItIsWrittenAndWhoeverWritesIt(t *testing.T) {
	t.Parallel()
	own := ownAddress(t)
	w := &world{at: map[string]string{}, names: map[string][]string{
		"localhost": {"127.0.0.1", "::1"}, "alias": {"127.0.0.3"}, "several": {"192.0.2.9", "127.0.0.1"}, "first": {"192.0.2.1", "2001:db8::1"}, "second": {"2001:db8::1", "192.0.2.77"},
		"third": {"192.0.2.77"},
	}}
	n := startNode(t, &node{})
	s := openIn(t, w, n)
	register := func(k int, token, id, address string) error {
		_, err := s.gateway(k, token).RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: id, Address: address})
		return err
	}
	for first, others := range map[string][]string{
		"127.0.0.1:7001": {
			"127.0.0.1:7001", "127.0.0.1:07001", "localhost:7001", "LocalHost:7001", "localhost.:7001", "[::1]:7001", "[::ffff:127.0.0.1]:7001", "[::ffff:7f00:1]:7001", "[0:0:0:0:0:0:0:1]:7001",
			"127.0.0.2:7001", "127.255.255.254:7001", "alias:7001", "several:7001", own + ":7001", "[64:ff9b::7f00:1]:7001", "[2002:7f00:1::]:7001",
		},
		own + ":7002":    {"127.0.0.1:7002", "localhost:7002", "[::ffff:" + own + "]:7002"},
		"several:7003":   {"192.0.2.9:7003", "127.0.0.1:7003", "SEVERAL:7003", "[::ffff:192.0.2.9]:7003"},
		"first:7004":     {"second:7004", "192.0.2.1:7004", "[2001:db8::1]:7004", "[2001:DB8:0::1]:7004"},
		"third:7005":     {"192.0.2.77:7005", "second:7005", "third.:7005"},
		"[fe80::1]:7006": {"[fe80:0::1]:7006"},
	} {
		if err := register(0, "t/p", "node of "+first, first); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		for _, other := range others {
			for k := range 2 {
				for _, token := range []string{"t/p", "t/q", "u/p"} {
					refused(t, token+" registers "+other+" at edge "+string(rune('0'+k))+", which "+first+" is", register(k, token, "other", other), codes.AlreadyExists, "Address ["+canonical(t, other)+"] already registered.")
				}
			}
		}
		if out, err := s.gateway(1, "t/p").DeregisterNode(t.Context(), &wire.DeregisterNodeRequest{NodeId: "node of " + first}); err != nil || !out.GetSuccess() {
			t.Fatalf("deregister: %v, %v", out, err)
		}
		if err := register(1, "u/q", "next", others[0]); err != nil {
			t.Errorf("%s, which nobody has any more: %v", others[0], err)
		}
		if _, err := s.gateway(1, "u/q").DeregisterNode(t.Context(), &wire.DeregisterNodeRequest{NodeId: "next"}); err != nil {
			t.Fatal(err)
		}
	}
	for id, address := range map[string]string{"a": "127.0.0.1:7101", "b": "127.0.0.1:7102", "c": "192.0.2.1:7101", "d": "third:7101"} {
		if err := register(0, "t/p", id, address); err != nil {
			t.Errorf("%s, which is nobody's: %v", address, err)
		}
	}
}

// What some resolvers or systems take for another way to write an address is none.
func TestNoOtherWayToWriteAnAddressIsTaken(t *testing.T) {
	t.Parallel()
	s := openIn(t, &world{at: map[string]string{}, names: map[string][]string{}}, startNode(t, &node{}))
	for address, want := range map[string]codes.Code{
		"unix:/tmp/x": codes.InvalidArgument, "unix:///tmp/x": codes.InvalidArgument, "dns:///localhost:80": codes.InvalidArgument, "passthrough:///127.0.0.1:80": codes.InvalidArgument,
		"ipv4:127.0.0.1:80": codes.InvalidArgument, "127.0.0.1:80,127.0.0.1:81": codes.InvalidArgument, "2130706433:80": codes.InvalidArgument, "0177.0.0.1:80": codes.InvalidArgument,
		"127.1:80": codes.InvalidArgument, "0x7f000001:80": codes.InvalidArgument, "127.0.0.1:+80": codes.InvalidArgument, "127.0.0.1:0": codes.InvalidArgument, "127.0.0.1:http": codes.InvalidArgument,
		"[fe80::1%eth0]:80": codes.InvalidArgument, "１２７.0.0.1:80": codes.InvalidArgument, "127。0。0。1:80": codes.InvalidArgument,
		"0.0.0.0:80": codes.PermissionDenied, "[::]:80": codes.PermissionDenied, "[::ffff:0.0.0.0]:80": codes.PermissionDenied, "unix:80": codes.Unavailable,
	} {
		_, err := s.gateway(0, "t/p").RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: "a", Address: address})
		refused(t, address, err, want, "")
	}
}

func canonical(t *testing.T, address string) string {
	t.Helper()
	c, err := dialing.Canonical(address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ownAddress returns an address of IPv4 that this machine has besides those of loopback; of loopback where it has none.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr().String()
		}
	}
	return "127.0.0.5"
}

// A registration that is refused takes nothing, and gives up nothing that its id has.
func TestARefusedRegistrationLeavesAddressesAsTheyAre(t *testing.T) {
	t.Parallel()
	w := &world{at: map[string]string{}, names: map[string][]string{"both": {"192.0.2.1", "192.0.2.2"}}}
	s := openIn(t, w, startNode(t, &node{}))
	register := func(token, id, address string) error {
		_, err := s.gateway(0, token).RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: id, Address: address})
		return err
	}
	if err := register("t/p", "a", "192.0.2.2:7000"); err != nil {
		t.Fatal(err)
	}
	refused(t, "a part of which is taken", register("u/q", "b", "both:7000"), codes.AlreadyExists, "Address [both:7000] already registered.")
	refused(t, "an id that is taken", register("t/p", "a", "192.0.2.3:7000"), codes.AlreadyExists, "Agent [a] already registered.")
	for _, address := range []string{"192.0.2.1:7000", "192.0.2.3:7000"} {
		if err := register("u/q", "c"+address, address); err != nil {
			t.Errorf("%s, which nobody has got: %v", address, err)
		}
	}
	refused(t, "what a has still", register("u/q", "d", "192.0.2.2:7000"), codes.AlreadyExists, "")
}

// A name that stands for another node's address later leads nobody there.
func TestANameThatComesToMeanAnotherNodeIsNotDialled(t *testing.T) {
	t.Parallel()
	w := &world{at: map[string]string{}, names: map[string][]string{"mall.example": {"192.0.2.66"}}}
	alice, mall := startNode(t, &node{}), startNode(t, &node{})
	s := openIn(t, w, mall)
	w.mu.Lock()
	w.at["192.0.2.1:7000"] = alice.addr
	w.mu.Unlock()
	for id, address := range map[string]string{"alice": "192.0.2.1:7000", "mall": "mall.example:7000"} {
		if _, err := s.gateway(0, "t/"+id).RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: id, Address: address}); err != nil {
			t.Fatal(err)
		}
	}
	w.means("mall.example", "192.0.2.1")
	await.True(t, "edge 1 lists it", func() bool {
		out, err := s.gateway(1, "t/mall").GetNodes(t.Context(), &wire.GetNodesRequest{})
		return err == nil && len(out.GetPeers()) == 2
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	call, err := s.gateway(1, "t/mall").RouteAgentCalling(ctx)
	if err == nil {
		_ = call.Send(asks("mall", "mall", "s", wire.AgentMessage_START_QUEST, text("hi")))
		_, err = call.Recv()
	}
	if err == nil {
		t.Error("a call of mall by the edge that has dialled it anew has been answered")
	}
	alice.mu.Lock()
	defer alice.mu.Unlock()
	if len(alice.heads) != 0 {
		t.Errorf("alice was called: %v", alice.heads)
	}
}

// agentAt returns an agent of the Go client, which serves and is not registered.
func agentAt(t *testing.T, id string, gateways ...string) *aip.Agent {
	t.Helper()
	a, err := aip.NewAgent(aip.Config{ID: id, Gateways: gateways, Grace: -1, Token: "t/" + id})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	a.Handle(func(_ context.Context, s *aip.Session) error {
		for m := range s.Messages() {
			if m.GetSessionStatus() == aip.StopQuest {
				return s.Finish(m.GetContent()...)
			}
		}
		return nil
	})
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	return a
}

// Nobody else need have the address yet: a node of Agora says itself who it is, and whether it registers itself.
func TestANodeThatSaysWhoItIsIsNobodyElse(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: folk{}}}})
	alice := agentAt(t, "alice", s.addr(0))
	register := func(token, id, address string) error {
		_, err := s.gateway(1, token).RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: id, Address: address})
		return err
	}
	refused(t, "alice's node under another id", register("t/mall", "mall/x", alice.Address()), codes.PermissionDenied, "")
	refused(t, "it as a toolbox", second(s.gateway(1, "t/mall").RegisterTool(t.Context(), &wire.ToolBoxInfo{ToolboxId: "box", Address: alice.Address()})), codes.PermissionDenied, "")
	refused(t, "an edge as a node", register("t/mall", "mall/x", s.addr(0)), codes.PermissionDenied, "")
	if err := alice.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := alice.Deregister(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(t, "its id in another tenant, by somebody else", register("u/mall", "alice", alice.Address()), codes.PermissionDenied, "")
	if err := alice.Register(t.Context()); err != nil {
		t.Errorf("itself, once more: %v", err)
	}
	call, err := s.gateway(1, "t/alice").RouteAgentCalling(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*wire.AgentMessage{asks("alice", "alice", "s", wire.AgentMessage_START_QUEST, text("hi")), asks("alice", "alice", "s", wire.AgentMessage_STOP_QUEST, text("bye"))} {
		if err := call.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := call.Recv(); err != nil || m.GetSessionStatus() != wire.AgentMessage_STOP_RESPONSE {
		t.Errorf("a call of it by the other edge: %v, %v", m, err)
	}
	if a := agentAt(t, "by hand"); register("t/by hand", "by hand", a.Address()) != nil {
		t.Error("a node that does not register itself can't be registered by its owner")
	}
}
