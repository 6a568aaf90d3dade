package aip_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// modest returns a client of an edge that takes no more than libraries do by default.
func (s *site) modest(k int) wire.GatewayServiceClient {
	s.t.Helper()
	c, err := grpc.NewClient("passthrough:///"+s.addr(k), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return wire.NewGatewayServiceClient(c)
}

// rich registers agents of another dialect without a connection, whose skills say much.
func (s *site) rich(n int) (ids []string) {
	s.t.Helper()
	var skills []string
	for i := range 29 {
		skills = append(skills, fmt.Sprintf(`{"name":"skill-%d","description":"%s"}`, i, strings.Repeat("d", 4000)))
	}
	for i := range n {
		id := fmt.Sprintf("rich-%02d", i)
		body := strings.NewReader(`{"skills":[` + strings.Join(skills, ",") + `]}`)
		r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPut, s.HTTP(0)+"/agents/"+id, body)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			s.t.Fatalf("register %s: %s", id, resp.Status)
		}
		ids = append(ids, id)
	}
	return ids
}

// skillsOf returns how many skills nodes have, and how many of those are described.
func skillsOf(all []*wire.Peer) (skills, described int) {
	for _, p := range all {
		for _, s := range p.GetAgentInfo().GetSkills() {
			if skills++; s.GetCapability() != "" {
				described++
			}
		}
	}
	return skills, described
}

func idsIn(all []*wire.Peer) (ids []string) {
	for _, p := range all {
		ids = append(ids, wire.IDOf(p))
	}
	return ids
}

func TestNodesAreToldWithLessOfEachWhereAllIsTooMuch(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	want, gateway := s.rich(40), s.modest(0)
	want = slices.Insert(want, 0, "a new one")
	var header metadata.MD
	told, err := gateway.RegisterAgent(t.Context(), &wire.AgentInfo{
		AgentId: "a new one", Address: startNode(t, &node{}).addr, InputMode: []wire.Mode{wire.Mode_AUDIO},
	}, grpc.Header(&header))
	if err != nil || !told.GetSuccess() {
		t.Fatalf("RegisterAgent: %v, %v", told.GetSuccess(), err)
	}
	asked, err := gateway.GetNodes(t.Context(), &wire.GetNodesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for what, peers := range map[string][]*wire.Peer{"RegisterAgent": told.GetPeers(), "GetNodes": asked.GetPeers()} {
		if ids := idsIn(peers); !slices.Equal(ids, want) {
			t.Errorf("%s tells of %q", what, ids)
		}
		if skills, described := skillsOf(peers); skills != 40*29 || described < skills/2 || described == skills {
			t.Errorf("%s tells of %d skills, and describes %d", what, skills, described)
		}
		if modes := peers[0].GetAgentInfo().GetInputMode(); !slices.Equal(modes, []wire.Mode{wire.Mode_AUDIO}) {
			t.Errorf("%s tells of the modes %v", what, modes)
		}
	}
	if left := wire.LeftOut(header); !slices.Equal(left, []string{"descriptions"}) {
		t.Errorf("it says that it has left out %q", left)
	}
}

func TestWhoAsksForPagesOfNodesGetsThemWhole(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	want, gateway := s.rich(70), s.modest(0)
	all, err := wire.AllNodes(t.Context(), gateway, &wire.GetNodesRequest{}, 64<<20)
	if skills, described := skillsOf(all); err != nil || !slices.Equal(idsIn(all), want) || described != skills {
		t.Errorf("%q, %v: %d skills, %d described", idsIn(all), err, skills, described)
	}
	var header metadata.MD
	second, err := gateway.GetNodes(metadata.AppendToOutgoingContext(t.Context(), "agora-aip-after-bin", "rich-68"), &wire.GetNodesRequest{}, grpc.Header(&header))
	if err != nil || !slices.Equal(idsIn(second.GetPeers()), want[69:]) || len(header.Get("agora-aip-next-bin")) > 0 {
		t.Errorf("behind the last but one: %q, %v, next %q", idsIn(second.GetPeers()), err, header.Get("agora-aip-next-bin"))
	}
	if _, err := wire.AllNodes(t.Context(), gateway, &wire.GetNodesRequest{}, 1<<20); err == nil {
		t.Error("more nodes are read than are wanted")
	}
	a := answering(t, "told of all", s.addr(0))
	known := make([]*wire.Peer, 0, len(want))
	for _, p := range a.Nodes() {
		known = append(known, p)
	}
	if skills, described := skillsOf(known); len(known) != len(want)+1 || skills != described {
		t.Errorf("a node of the Go client knows %d nodes of %d, %d skills of which %d are described", len(known), len(want)+1, skills, described)
	}
}

func TestALinkBringsNodesThatAreMoreThanOneAnswerHasRoomFor(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	want := s.rich(40)
	g := gatewayOfTheClient(t)
	if err := g.ConnectToGateway(await.Context(t), s.addr(0)); err != nil {
		t.Fatal(err)
	}
	if all := g.Nodes(); len(all) != len(want) {
		t.Errorf("the gateway lists %d nodes, want %d", len(all), len(want))
	}
	c, err := grpc.NewClient("passthrough:///"+g.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	out, err := wire.NewGatewayServiceClient(c).GetNodes(t.Context(), &wire.GetNodesRequest{})
	if err != nil || len(out.GetPeers()) != len(want) || proto.Size(out) > wire.MaxListing {
		t.Errorf("it answers with %d nodes of %d, %v", len(out.GetPeers()), len(want), err)
	}
	all, err := wire.AllNodes(t.Context(), wire.NewGatewayServiceClient(c), &wire.GetNodesRequest{}, 64<<20)
	if skills, described := skillsOf(all); err != nil || !slices.Equal(idsIn(all), want) || described != skills {
		t.Errorf("in pages %q, %v: %d skills, %d described", idsIn(all), err, skills, described)
	}
}

func TestAnAgentThatIsNotAnsweredIsNotRegistered(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	s.Node(0).SetLimits(admission.Limits{TenantRate: 0.001, Burst: 2000}) // as many messages as a registration is, and none for its answer
	a := &wire.AgentInfo{AgentId: "a", Address: startNode(t, &node{}).addr}
	_, err := s.gateway(0, "").RegisterAgent(t.Context(), a)
	refused(t, "an answer too many", err, codes.ResourceExhausted, "")
	s.Node(0).SetLimits(admission.Limits{})
	s.lists(0)
	if out, err := s.gateway(0, "").RegisterAgent(t.Context(), a); err != nil || !out.GetSuccess() {
		t.Errorf("said again: %v, %v", out, err)
	}
}

func TestAnAgentThatMayNotSeeTheDirectoryIsToldOfItselfAlone(t *testing.T) {
	t.Parallel()
	rules, err := policy.Parse([]byte("rules:\n- {name: all, who: {names: [anna]}, agents: [\"*\"]}\n- {name: seer, who: {names: [sue]}, agents: [\"*\"], directory: true}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := new(policy.Policy)
	p.Set(rules)
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: folk{}, Policy: p}}})
	for token, want := range map[string]string{"t/sue": "[sue]", "t/anna": "[anna]"} {
		id := strings.TrimPrefix(token, "t/")
		out, err := s.gateway(0, token).RegisterAgent(t.Context(), &wire.AgentInfo{AgentId: id, Address: startNode(t, &node{}).addr})
		if got := fmt.Sprint(idsIn(out.GetPeers())); err != nil || id == "anna" && got != want {
			t.Errorf("%s is told of %s, %v", token, got, err)
		}
	}
}
