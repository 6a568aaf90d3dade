package aip_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// links an edge's cluster to a gateway.
func (s *site) links(k int, address string) {
	s.t.Helper()
	if err := s.door(k).Link(s.t.Context(), "", address); err != nil {
		s.t.Fatalf("link to %s: %v", address, err)
	}
}

// link returns how a link stands, as an edge has it; the zero one for none.
func (s *site) link(k int, address string) aip.LinkView {
	s.t.Helper()
	all, err := s.door(k).Links(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range all {
		if l.Address == address {
			return l
		}
	}
	return aip.LinkView{}
}

// pair is two clusters that are linked to each other, with a node and a toolbox each.
func pair(t *testing.T, edges int) (one, two *site) {
	t.Helper()
	one, two = open(t, setup{Options: agoratest.Options{Edges: edges}}), open(t, setup{Options: agoratest.Options{Edges: edges}})
	for i, s := range []*site{one, two} {
		name := []string{"one", "two"}[i]
		s.registered(0, "agent-"+name, startNode(t, &node{}))
		s.toolbox(edges-1, "box-"+name, startNode(t, &node{}), &wire.ToolInfo{Name: "echo"})
	}
	one.links(0, two.addrs[0])
	two.links(0, one.addrs[edges-1])
	for _, s := range []*site{one, two} {
		for k := range edges {
			s.lists(k, "agent-one", "agent-two", "box-one", "box-two")
		}
	}
	return one, two
}

// converses holds a session of three messages with an agent by an edge, and fails the test unless each is answered as
// it is.
func (s *site) converses(k int, with string) {
	s.t.Helper()
	c := s.session(k)
	for i, status := range []wire.AgentMessage_SessionStatus{wire.AgentMessage_START_QUEST, wire.AgentMessage_HOLD_QUEST, wire.AgentMessage_STOP_QUEST} {
		image := []byte{0, 255, 128, byte(i)}
		m := asks("caller", with, "s", status, &wire.ContentItem{Data: &wire.ContentItem_Image{Image: image}})
		if err := c.Send(m); err != nil {
			s.t.Fatal(err)
		}
		got, err := c.Recv()
		if err != nil || string(got.GetContent()[0].GetImage()) != string(image) {
			s.t.Fatalf("%s answers %v, %v", with, got, err)
		}
	}
	if all, err := ends(c); err != nil || len(all) > 0 {
		s.t.Errorf("the session with %s ends with %v, %v", with, all, err)
	}
}

// uses calls a tool by an edge.
func (s *site) uses(k int, box string) {
	s.t.Helper()
	out, err := s.gateway(k, "").RouteToolCalling(s.t.Context(), &wire.ToolRequest{SenderId: "caller", ReceiverId: box, SessionId: "s", ToolName: "echo", Arguments: `{"a": 1.0}`})
	if err != nil || out.GetContent()[0].GetText() != `{"a": 1.0}` {
		s.t.Fatalf("%s answers %v, %v", box, out, err)
	}
}

func TestLinkedClustersHaveEachOthersNodes(t *testing.T) {
	t.Parallel()
	one, two := pair(t, 2)
	for _, s := range []*site{one, two} {
		for k := range 2 {
			for _, id := range []string{"agent-one", "agent-two"} {
				s.converses(k, id)
			}
			for _, id := range []string{"box-one", "box-two"} {
				s.uses(k, id)
			}
		}
	}
	for k := range 2 {
		all := one.nodes(k)
		if at := all["agent-two"].GetAgentInfo(); at.GetAddress() != one.addrs[k] || at.GetName() != "Node agent-two" {
			t.Errorf("edge %d lists %v, want it at %s", k, at, one.addrs[k])
		}
		if at := all["box-two"].GetToolboxInfo(); at.GetAddress() != one.addrs[k] || at.GetTools()[0].GetName() != "echo" {
			t.Errorf("edge %d lists %v, want it at %s", k, at, one.addrs[k])
		}
		if at := all["agent-one"].GetAgentInfo().GetAddress(); at == one.addrs[k] {
			t.Errorf("its own node is listed at %s", at)
		}
		for id, p := range all {
			if len(p.ProtoReflect().GetUnknown()) > 0 {
				t.Errorf("%s is listed with what only gateways tell each other", id)
			}
		}
	}
	await.True(t, "the links say that they are up", func() bool {
		l := one.link(1, two.addrs[0])
		return l.State == aip.LinkUp && l.Edge != "" && l.Nodes == 2 && l.Offered == 2 && l.Error == ""
	})
}

// Updates pass, unknown fields with them; what changes shows to subscribers at every edge.
func TestALinkFollowsWhatChanges(t *testing.T) {
	t.Parallel()
	one, two := open(t, setup{Options: agoratest.Options{Edges: 2}}), open(t, setup{Options: agoratest.Options{Edges: 1}})
	one.links(1, two.addrs[0])
	w := one.subscribed(0, "", "w")
	n := startNode(t, &node{})
	for range 2 {
		info := &wire.AgentInfo{AgentId: "a", Address: n.addr}
		info.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "kept"))
		if _, err := two.gateway(0, "").RegisterAgent(t.Context(), info); err != nil {
			t.Fatal(err)
		}
		got, p := told(t, w)
		if got != "ADDED a" || p.GetAgentInfo().GetAddress() != one.addrs[0] || string(p.GetAgentInfo().ProtoReflect().GetUnknown()) != string(info.ProtoReflect().GetUnknown()) {
			t.Errorf("told %s: %v", got, p)
		}
		two.updates(0, "a", n, "new")
		if got, p := told(t, w); got != "UPDATED a" || p.GetAgentInfo().GetDescription() != "new" {
			t.Errorf("told %s: %v", got, p)
		}
		one.converses(0, "a")
		two.deregisters(0, "a")
		tells(t, w, "REMOVED a")
		if all, err := ends(one.startedSession(0, "a")); status.Code(err) != codes.NotFound || len(all) > 0 {
			t.Errorf("called then it is %v, %v", all, err)
		}
	}
	c := agoratest.Connect(t, agoratest.Direct{}, two.URL(0), "agent_id=talker", nil)
	tells(t, w, "ADDED talker")
	c.Close(1000)
	tells(t, w, "REMOVED talker")
}

// startedSession returns a session that has begun.
func (s *site) startedSession(k int, with string) wire.GatewayService_RouteAgentCallingClient {
	s.t.Helper()
	c := s.session(k)
	if err := c.Send(asks("caller", with, "s", wire.AgentMessage_START_QUEST, text("hello"))); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// Agents of other dialects write to a node behind a link as to any: by its mailbox.
func TestAgentsOfOtherDialectsReachWhatIsLinked(t *testing.T) {
	t.Parallel()
	one, two := pair(t, 2)
	c := one.guarded(1, "talker")
	c.Send(`{"type":"send","to":"agent-two","payload":{"request_id":"r","text":"hello"}}`)
	c.Await(`{"type":"reply","from":"agent-two","request_id":"r"}`)
	c.Send(`{"type":"call_tool","id":"t","to":"box-two","tool_name":"echo","arguments":{"a":1}}`)
	c.Await(`{"type":"tool.result"}`)
	other := two.guarded(1, "listener")
	one.lists(0, "agent-one", "agent-two", "box-one", "box-two", "listener", "talker")
	c.Send(`{"type":"send","to":"listener","payload":{"request_id":"q","text":"over there"}}`)
	other.Await(`{"type":"message","from":"talker"}`)
}

// An id that is here goes before one of a link, whenever it comes; when it is gone the other one is there again.
func TestAnIDThatIsHereWins(t *testing.T) {
	t.Parallel()
	one, two := open(t, setup{Options: agoratest.Options{Edges: 2}}), open(t, setup{Options: agoratest.Options{Edges: 1}})
	first, later := startNode(t, &node{}), startNode(t, &node{})
	one.registered(0, "first", startNode(t, &node{}))
	two.registered(0, "first", first)
	two.registered(0, "later", later)
	one.links(0, two.addrs[0])
	one.lists(1, "first", "later")
	isHere := func(id string) bool {
		p := one.nodes(1)[id].GetAgentInfo()
		return p != nil && p.GetAddress() != one.addrs[1]
	}
	if !isHere("first") || isHere("later") {
		t.Errorf("it lists %v", one.nodes(1))
	}
	one.registered(1, "later", startNode(t, &node{}))
	if !isHere("later") {
		t.Error("one that has registered here is not listed at once")
	}
	two.updates(0, "later", later, "anew") // it is offered again
	two.updates(0, "first", first, "anew")
	two.registered(0, "sign", startNode(t, &node{}))
	one.lists(1, "first", "later", "sign")
	if !isHere("first") || !isHere("later") {
		t.Errorf("then it lists %v", one.nodes(1))
	}
	for _, id := range []string{"first", "later"} {
		one.deregisters(1, id)
		await.True(t, id+" is that of the link again", func() bool {
			p := one.nodes(1)[id].GetAgentInfo()
			return p != nil && p.GetAddress() == one.addrs[1]
		})
		one.converses(0, id)
	}
}
