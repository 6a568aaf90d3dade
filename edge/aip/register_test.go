package aip_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// ids returns the ids of the nodes that an edge lists, sorted.
func (s *site) ids(k int, domain string) (all []string) {
	s.t.Helper()
	out, err := s.gateway(k, "").GetNodes(s.t.Context(), &wire.GetNodesRequest{Domain: domain})
	if err != nil {
		s.t.Fatalf("GetNodes at edge %d: %v", k, err)
	}
	for _, p := range out.GetPeers() {
		if a := p.GetAgentInfo(); a != nil {
			all = append(all, a.GetAgentId())
		} else {
			all = append(all, p.GetToolboxInfo().GetToolboxId())
		}
	}
	slices.Sort(all)
	return all
}

// lists waits until an edge lists exactly some nodes.
func (s *site) lists(k int, want ...string) {
	s.t.Helper()
	await.True(s.t, fmt.Sprintf("edge %d lists %q", k, want), func() bool { return slices.Equal(s.ids(k, ""), want) })
}

// refused reports that an error is not a status of a code and a text.
func refused(t *testing.T, what string, err error, code codes.Code, text string) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != code || text != "" && s.Message() != text {
		t.Errorf("%s: %v %q, want %v %q", what, s.Code(), s.Message(), code, text)
	}
}

func TestANodeIsListedAtEveryEdgeAsItHasRegistered(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	n, box := startNode(t, &node{}), startNode(t, &node{})
	info := &wire.AgentInfo{
		AgentId: "a", Address: n.addr, Name: "An agent", Domain: "tests", InputMode: []wire.Mode{wire.Mode_IMAGE}, Description: "d",
		Skills: []*wire.AgentInfo_AgentSkill{{SkillId: "s", Capability: "c"}}, Version: "1",
	}
	unknown := protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "kept")
	info.ProtoReflect().SetUnknown(unknown)
	out, err := s.gateway(0, "").RegisterAgent(t.Context(), info)
	if err != nil || !out.GetSuccess() || len(out.GetPeers()) != 1 || !proto.Equal(out.GetPeers()[0].GetAgentInfo(), info) {
		t.Fatalf("registered: %v, %v", out, err)
	}
	s.toolbox(1, "b", box, &wire.ToolInfo{Name: "add", Arguments: `{"type":"object"}`})
	for k := range 3 {
		s.lists(k, "a", "b")
	}
	peers, err := s.gateway(2, "").GetNodes(t.Context(), &wire.GetNodesRequest{Domain: "tests"})
	if err != nil || len(peers.GetPeers()) != 2 || !proto.Equal(peers.GetPeers()[0].GetAgentInfo(), info) {
		t.Errorf("elsewhere: %v, %v", peers, err)
	}
	if got := s.ids(2, "other"); len(got) > 0 {
		t.Errorf("in another domain: %q", got)
	}
	if out, err := s.gateway(2, "").DeregisterNode(t.Context(), &wire.DeregisterNodeRequest{NodeId: "a"}); err != nil || !out.GetSuccess() {
		t.Errorf("deregistered by another edge: %v, %v", out, err)
	}
	for k := range 3 {
		s.lists(k, "b")
	}
	if out, err := s.gateway(0, "").DeregisterNode(t.Context(), &wire.DeregisterNodeRequest{NodeId: "a"}); err != nil || out.GetSuccess() {
		t.Errorf("deregistered twice: %v, %v", out, err)
	}
	s.registered(1, "a", n)
}

func TestWhatCannotBeRegisteredIsRefusedInTheWordsOfTheProtocol(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}, door: aip.Config{DialTimeout: time.Second}})
	n, other := startNode(t, &node{}), startNode(t, &node{})
	s.registered(0, "a", n)
	g := s.gateway(1, "")
	agent := func(id, address string) error {
		_, err := g.RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: id, Address: address})
		return err
	}
	tool := func(id, address string) error {
		_, err := g.RegisterTool(t.Context(), &wire.ToolBoxInfo{ToolboxId: id, Address: address})
		return err
	}
	refused(t, "its id again", agent("a", other.addr), codes.AlreadyExists, "Agent [a] already registered.")
	refused(t, "a toolbox of its id", tool("a", other.addr), codes.AlreadyExists, "Tool [a] already registered.")
	refused(t, "its address", agent("b", n.addr), codes.AlreadyExists, "Address ["+n.addr+"] already registered.")
	refused(t, "a toolbox at its address", tool("b", n.addr), codes.AlreadyExists, "Address ["+n.addr+"] already registered.")
	refused(t, "no id", agent("", other.addr), codes.InvalidArgument, "")
	refused(t, "no address", agent("c", ""), codes.InvalidArgument, "")
	refused(t, "an address without a port", agent("c", "localhost"), codes.InvalidArgument, "")
	refused(t, "the cluster's id", agent("agora", other.addr), codes.InvalidArgument, "")
	other.stop()
	refused(t, "an address where nobody is", agent("c", other.addr), codes.Unavailable, "")
	refused(t, "an address that may not be dialled", agent("c", "169.254.1.1:80"), codes.PermissionDenied, "")
	s.lists(0, "a")
	s.lists(1, "a")
}

func TestAHeartbeatCountsAtEveryEdgeAndSilenceDeregisters(t *testing.T) {
	t.Parallel()
	s := open(t, setup{door: aip.Config{HeartbeatTimeout: 3 * time.Second}})
	n, silent := startNode(t, &node{}), startNode(t, &node{})
	s.registered(0, "a", n)
	s.registered(1, "silent", silent)
	k := 0
	await.True(t, "who is silent is deregistered, while heartbeats of another come by edges in turn", func() bool {
		k++
		out, err := s.gateway(k%3, "").Heartbeat(t.Context(), &wire.HeartbeatRequest{SenderId: "a"})
		if err != nil || !out.GetSuccess() {
			t.Fatalf("heartbeat %d: %v, %v", k, out, err)
		}
		return slices.Equal(s.ids(2, ""), []string{"a"})
	})
	s.lists(0, "a")
	out, err := s.gateway(0, "").Heartbeat(t.Context(), &wire.HeartbeatRequest{SenderId: "silent"})
	if err != nil || out.GetSuccess() || out.GetMessage() != "Node silent not registered" {
		t.Errorf("of who is not registered any more: %v, %v", out, err)
	}
}

func TestACallThatANodeMakesIsASignOfItsLife(t *testing.T) {
	t.Parallel()
	s := open(t, setup{door: aip.Config{HeartbeatTimeout: 3 * time.Second}})
	n, silent := startNode(t, &node{}), startNode(t, &node{})
	s.registered(0, "a", n)
	s.registered(1, "silent", silent)
	await.True(t, "who is silent is deregistered, while another calls a tool now and then", func() bool {
		_, err := s.gateway(0, "").RouteToolCalling(t.Context(), &wire.ToolRequest{SenderId: "a", ReceiverId: "nobody", SessionId: "s", ToolName: "t"})
		if status.Code(err) != codes.NotFound {
			t.Fatalf("a call of nobody's tool: %v", err)
		}
		return !slices.Contains(s.ids(2, ""), "silent")
	})
	s.lists(2, "a")
}

func TestADeadNodeMakesRoomForAnother(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Probe: time.Second}}})
	n, next := startNode(t, &node{}), startNode(t, &node{})
	s.registered(0, "a", n)
	n.stop()
	await.True(t, "another registers under its id", func() bool {
		_, err := s.gateway(1, "").RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: "a", Address: next.addr})
		return err == nil
	})
}

func TestANodeSaysAnewWhatItIsAtAnyEdge(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	n := startNode(t, &node{})
	s.registered(0, "a", n)
	for k := range 2 {
		info := &wire.AgentInfo{AgentId: "a", Address: n.addr, Name: fmt.Sprint("Name ", k)}
		out, err := s.gateway(k, "").UpdateNodeInfo(t.Context(), &wire.UpdateNodeInfoRequest{NodeInfo: &wire.Peer{InfoType: &wire.Peer_AgentInfo{AgentInfo: info}}})
		if err != nil || !out.GetSuccess() {
			t.Fatalf("update at edge %d: %v, %v", k, out, err)
		}
		await.True(t, "it is seen", func() bool {
			peers, err := s.gateway(1-k, "").GetNodes(t.Context(), &wire.GetNodesRequest{})
			return err == nil && len(peers.GetPeers()) == 1 && proto.Equal(peers.GetPeers()[0].GetAgentInfo(), info)
		})
	}
	out, err := s.gateway(0, "").UpdateNodeInfo(t.Context(), &wire.UpdateNodeInfoRequest{NodeInfo: &wire.Peer{InfoType: &wire.Peer_AgentInfo{AgentInfo: &wire.AgentInfo{AgentId: "b", Address: n.addr}}}})
	if err != nil || out.GetSuccess() || out.GetMessage() != "Node b not registered" {
		t.Errorf("of who is not registered: %v, %v", out, err)
	}
}

func TestWhoRegistersIsToldOfAllAsTheyAreNow(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	told := func(id string) (all []string) {
		t.Helper()
		out, err := s.gateway(0, "").RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: id, Address: startNode(t, &node{}).addr, Description: "new"})
		if err != nil || !out.GetSuccess() {
			t.Fatalf("register %s: %v, %v", id, out, err)
		}
		for _, p := range out.GetPeers() {
			if a := p.GetAgentInfo(); a != nil {
				all = append(all, a.GetAgentId()+" "+a.GetDescription())
			} else {
				all = append(all, p.GetToolboxInfo().GetToolboxId()+" "+p.GetToolboxInfo().GetDescription())
			}
		}
		return all
	}
	s.toolbox(1, "box", startNode(t, &node{}))
	s.lists(0, "box")
	for _, id := range []string{"a", "b", "c"} {
		told(id)
	}
	if got, want := told("d"), []string{"a new", "b new", "box ", "c new", "d new"}; !slices.Equal(got, want) {
		t.Errorf("d is told of %q, want %q", got, want)
	}
	for _, description := range []string{"changed", "new", "changed again"} {
		a := &wire.AgentInfo{AgentId: "a", Address: s.addressOf("a"), Description: description}
		if out, err := s.gateway(0, "").UpdateNodeInfo(t.Context(), &wire.UpdateNodeInfoRequest{NodeInfo: &wire.Peer{InfoType: &wire.Peer_AgentInfo{AgentInfo: a}}}); err != nil || !out.GetSuccess() {
			t.Fatalf("update: %v, %v", out, err)
		}
		id := "e-" + strings.ReplaceAll(description, " ", "-")
		if got, want := told(id), "a "+description; !slices.Contains(got, want) {
			t.Errorf("%s is told of %q, want %q", id, got, want)
		}
	}
	if _, err := s.gateway(0, "").DeregisterNode(t.Context(), &wire.DeregisterNodeRequest{NodeId: "b"}); err != nil {
		t.Fatal(err)
	}
	if got := told("f"); slices.Contains(got, "b new") {
		t.Errorf("f is told of %q, and b has left", got)
	}
}

// addressOf returns the address that edge 0 lists a node with.
func (s *site) addressOf(id string) string {
	s.t.Helper()
	out, err := s.gateway(0, "").GetNodes(s.t.Context(), &wire.GetNodesRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range out.GetPeers() {
		if p.GetAgentInfo().GetAgentId() == id {
			return p.GetAgentInfo().GetAddress()
		}
	}
	s.t.Fatalf("%s is not listed", id)
	return ""
}
