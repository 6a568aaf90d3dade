package aip

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	wire "github.com/agora-relay/agora/wire/aip"
)

// closedPort returns an address at which nothing listens.
func closedPort(t testing.TB) string {
	t.Helper()
	addr, err := servers.Addr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func TestRegistrationsAreRefusedInTheWordsOfTheProtocol(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := startAgent(t, config(g, "bob"), echo)
	other := startAgent(t, config(nil, "other"), echo)
	c, ctx := rawGateway(t, g), await.Context(t)
	for about, try := range map[string]struct {
		id, address string
		code        codes.Code
		agent, tool string
	}{
		"an id that is there":          {"bob", other.Address(), codes.AlreadyExists, "Agent [bob] already registered.", "Tool [bob] already registered."},
		"id and address that are":      {"bob", bob.Address(), codes.AlreadyExists, "Agent [bob] already registered.", "Tool [bob] already registered."},
		"an address that is there":     {"x", bob.Address(), codes.AlreadyExists, "Address [" + bob.Address() + "] already registered.", "Address [" + bob.Address() + "] already registered."},
		"no id":                        {"", other.Address(), codes.InvalidArgument, "", ""},
		"an id that is too long":       {strings.Repeat("x", 129), other.Address(), codes.InvalidArgument, "", ""},
		"the cluster's own id":         {"agora", other.Address(), codes.InvalidArgument, "", ""},
		"no address":                   {"x", "", codes.InvalidArgument, "", ""},
		"an address without a port":    {"x", "localhost", codes.InvalidArgument, "", ""},
		"an address nobody listens at": {"x", closedPort(t), codes.Unavailable, "", ""},
	} {
		_, err := c.RegisterAgent(ctx, &AgentInfo{AgentId: try.id, Address: try.address})
		isStatus(t, "an agent with "+about, err, try.code, try.agent)
		_, err = c.RegisterTool(ctx, &ToolBoxInfo{ToolboxId: try.id, Address: try.address})
		isStatus(t, "a toolbox with "+about, err, try.code, try.tool)
	}
	if got := g.Nodes(); len(got) != 1 || got["bob"] == nil {
		t.Errorf("the gateway lists %v, want bob alone", got)
	}
}

func TestWhoRegistersIsToldOfAllNodes(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startToolbox(t, config(g, "box"), nil)
	bob := startAgent(t, config(g, "bob"), echo)
	nodes := bob.Nodes()
	if len(nodes) != 2 || !isToolbox(nodes["box"]) || nodes["bob"].GetAgentInfo().GetAddress() != bob.Address() {
		t.Errorf("bob knows %v, want box and himself", nodes)
	}
	if a, b := g.Agents(), g.Toolboxes(); len(a) != 1 || a["bob"] == nil || len(b) != 1 || b["box"] == nil {
		t.Errorf("agents %v and toolboxes %v, want bob and box", a, b)
	}
}

func TestNodesAreListedByTheirDomains(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	for id, domain := range map[string]string{"a": "red", "b": "blue", "c": ""} {
		cfg := config(g, id)
		cfg.Domain = domain
		startAgent(t, cfg, echo)
	}
	caller := newAgent(t, config(g, "alice"))
	for domain, want := range map[string][]string{"": {"a", "b", "c"}, "default": {"a", "b", "c"}, "red": {"a"}, "green": nil} {
		if err := caller.UpdatePeers(await.Context(t), domain); err != nil {
			t.Fatal(err)
		}
		var got []string
		for id := range caller.Nodes() {
			got = append(got, id)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("domain %q has %v, want %v", domain, got, want)
		}
	}
}

func TestANodeThatIsGoneMakesRoomForItsId(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	old := startAgent(t, config(g, "bob"), echo)
	kill(old.node)
	bob := startAgent(t, config(g, "bob"), echo)
	if got := g.Agents()["bob"].GetAddress(); got != bob.Address() {
		t.Errorf("bob is listed at %s, want %s", got, bob.Address())
	}
}

func TestARegistrationIsListedAsItCame(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	other := startAgent(t, config(nil, "other"), echo)
	info := &AgentInfo{AgentId: "bob", Address: other.Address(), InputMode: []Mode{ImageMode}, Skills: []*AgentSkill{{SkillId: "s", Capability: "c"}}, Version: "3"}
	withUnknown(info)
	c, ctx := rawGateway(t, g), await.Context(t)
	resp, err := c.RegisterAgent(ctx, info)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.GetPeers()[0].GetAgentInfo(); !proto.Equal(got, info) {
		t.Errorf("listed is %v, want %v", got, info)
	}
	info.Description = "new"
	if up, err := c.UpdateNodeInfo(ctx, &wire.UpdateNodeInfoRequest{NodeInfo: agentPeer(info)}); err != nil || !up.GetSuccess() {
		t.Fatalf("an update: %v, %v", up, err)
	}
	if got := g.Agents()["bob"]; !proto.Equal(got, info) {
		t.Errorf("listed is %v, want %v", got, info)
	}
}

func TestANodeMovesToAnotherAddress(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), func(_ context.Context, s *Session) error { return errors.New("this is where bob was") })
	there := startAgent(t, config(nil, "bob"), echo)
	third := startAgent(t, config(g, "third"), echo)
	c, ctx := rawGateway(t, g), await.Context(t)
	update := func(address string) (*wire.UpdateNodeInfoResponse, error) {
		return c.UpdateNodeInfo(ctx, &wire.UpdateNodeInfoRequest{NodeInfo: agentPeer(&AgentInfo{AgentId: "bob", Address: address})})
	}
	_, err := update(third.Address())
	isStatus(t, "to an address that is taken", err, codes.AlreadyExists, "Address ["+third.Address()+"] already registered.")
	_, err = update(closedPort(t))
	isStatus(t, "to where nobody listens", err, codes.Unavailable, "")
	if resp, err := update(there.Address()); err != nil || !resp.GetSuccess() {
		t.Fatalf("to where he is: %v, %v", resp, err)
	}
	call := newAgent(t, config(g, "alice")).Call(ctx, "bob")
	defer call.Close()
	call.Start(Text("hi"))
	call.Stop()
	if got, err := answers(call); err != nil || !slices.Equal(got, []string{"HOLD_RESPONSE hi", "STOP_RESPONSE "}) {
		t.Errorf("bob answers %q, %v", got, err)
	}
}

func TestWhatIsNotRegisteredIsToldSo(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	c, ctx := rawGateway(t, g), await.Context(t)
	const want = "Node x not registered"
	beat, err := c.Heartbeat(ctx, &wire.HeartbeatRequest{SenderId: "x"})
	if err != nil || beat.GetSuccess() || beat.GetMessage() != want {
		t.Errorf("a sign of life: %v, %v, want %q", beat, err, want)
	}
	up, err := c.UpdateNodeInfo(ctx, &wire.UpdateNodeInfoRequest{NodeInfo: agentPeer(&AgentInfo{AgentId: "x", Address: "127.0.0.1:1"})})
	if err != nil || up.GetSuccess() || up.GetMessage() != want {
		t.Errorf("an update: %v, %v, want %q", up, err, want)
	}
	gone, err := c.DeregisterNode(ctx, &wire.DeregisterNodeRequest{NodeId: "x"})
	if err != nil || gone.GetSuccess() {
		t.Errorf("a deregistration: %v, %v, want no success", gone, err)
	}
}

func TestANodeThatIsSilentIsDeregistered(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{HeartbeatTimeout: 50 * time.Millisecond})
	startAgent(t, config(g, "bob"), echo) // who beats each hour
	lists(t, g, "bob", false)
}

func TestSignsOfLifeAndCallsKeepANode(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := startAgent(t, config(g, "bob"), echo)
	startToolbox(t, config(g, "box"), nil)
	caller, ctx := newAgent(t, config(g, "alice")), await.Context(t)
	seen := func(id string) time.Time {
		g.directory.mu.Lock()
		defer g.directory.mu.Unlock()
		return g.directory.members[id].seen
	}
	for about, live := range map[string]struct {
		id string
		do func()
	}{
		"a sign of life": {"bob", func() { bob.tell(ctx, bob.beatAt) }},
		"a session":      {"bob", func() { answers(caller.askCall(ctx, "bob")) }},
		"a tool call":    {"box", func() { caller.CallTool(ctx, "box", "x", nil) }},
	} {
		before := seen(live.id)
		if live.do(); !seen(live.id).After(before) {
			t.Errorf("%s does not count as life", about)
		}
	}
}

// askCall begins and ends a session, and returns it.
func (a *Agent) askCall(ctx context.Context, to string) *Call {
	c := a.Call(ctx, to)
	c.Start(Text("hi"))
	c.Stop()
	return c
}

func TestAGatewayThatIsClosedServesNoMore(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), echo)
	sub, err := newAgent(t, config(g, "alice")).Subscribe(await.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if err := sub.Begun(); err != nil {
		t.Fatal(err)
	}
	g.Close()
	for _, err := range sub.Updates() {
		isStatus(t, "a subscription", err, codes.Unavailable, "")
	}
	if err := g.Start(); !errors.Is(err, ErrClosed) {
		t.Errorf("it starts again with %v, want %v", err, ErrClosed)
	}
	if err := g.ConnectToGateway(await.Context(t), "127.0.0.1:1"); !errors.Is(err, ErrClosed) {
		t.Errorf("it connects with %v, want %v", err, ErrClosed)
	}
}
