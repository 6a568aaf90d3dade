package aip_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

type subscriptionStream = wire.GatewayService_SubscribeToUpdatesClient

// subscribed returns a subscription at an edge, which stands.
func (s *site) subscribed(k int, token, as string, ids ...string) subscriptionStream {
	s.t.Helper()
	out, err := s.gateway(k, token).SubscribeToUpdates(s.t.Context(), &wire.UpdateSubscriptionRequest{SubscriberId: as, NodeIds: ids})
	if err == nil {
		_, err = out.Header()
	}
	if err != nil {
		s.t.Fatalf("subscribe: %v", err)
	}
	return out
}

// told returns the next update as "ADDED id", and its peer.
func told(t *testing.T, s subscriptionStream) (string, *wire.Peer) {
	t.Helper()
	u, err := s.Recv()
	if err != nil {
		t.Fatalf("no update: %v", err)
	}
	return u.GetUpdateType().String() + " " + u.GetNodeId(), u.GetPeer()
}

// tells fails the test unless the next updates are these.
func tells(t *testing.T, s subscriptionStream, want ...string) {
	t.Helper()
	for _, w := range want {
		if got, _ := told(t, s); got != w {
			t.Errorf("update %q, want %q", got, w)
		}
	}
}

// updates has an edge take another description of a node.
func (s *site) updates(k int, id string, n *node, description string) {
	s.t.Helper()
	info := &wire.AgentInfo{AgentId: id, Address: n.addr, Name: "Node " + id, Domain: "tests", Description: description}
	out, err := s.gateway(k, "").UpdateNodeInfo(s.t.Context(), &wire.UpdateNodeInfoRequest{NodeInfo: &wire.Peer{InfoType: &wire.Peer_AgentInfo{AgentInfo: info}}})
	if err != nil || !out.GetSuccess() {
		s.t.Fatalf("update %s: %v, %v", id, out, err)
	}
}

// deregisters has an edge end the registration of a node.
func (s *site) deregisters(k int, id string) {
	s.t.Helper()
	out, err := s.gateway(k, "").DeregisterNode(s.t.Context(), &wire.DeregisterNodeRequest{NodeId: id})
	if err != nil || !out.GetSuccess() {
		s.t.Fatalf("deregister %s: %v, %v", id, out, err)
	}
}

// nodes returns the nodes that an edge lists, by id.
func (s *site) nodes(k int) map[string]*wire.Peer {
	s.t.Helper()
	out, err := s.gateway(k, "").GetNodes(s.t.Context(), &wire.GetNodesRequest{})
	if err != nil {
		s.t.Fatalf("nodes: %v", err)
	}
	all := map[string]*wire.Peer{}
	for _, p := range out.GetPeers() {
		id := p.GetAgentInfo().GetAgentId() + p.GetToolboxInfo().GetToolboxId()
		if all[id] != nil {
			s.t.Errorf("edge %d lists %s twice", k, id)
		}
		all[id] = p
	}
	return all
}

func TestASubscriberIsToldOnceAndInOrderAtEveryEdge(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	n := startNode(t, &node{})
	s.registered(0, "there", startNode(t, &node{}))
	await.True(t, "every edge lists what is there", func() bool { return s.nodes(1)["there"] != nil && s.nodes(2)["there"] != nil })
	all := []subscriptionStream{s.subscribed(0, "", "w"), s.subscribed(1, "", "w"), s.subscribed(2, "", "other")}
	one := s.subscribed(1, "", "picky", "a", "nobody")
	for _, w := range all {
		tells(t, w, "ADDED there")
	}
	for round := range 3 {
		s.registered(round, "a", n)
		for _, w := range append(all, one) {
			got, p := told(t, w)
			if want := s.nodes(round)["a"]; got != "ADDED a" || !proto.Equal(p, want) {
				t.Errorf("told %s: %v, want %v", got, p, want)
			}
		}
		s.updates((round+1)%3, "a", n, fmt.Sprint("round ", round))
		for _, w := range append(all, one) {
			if got, p := told(t, w); got != "UPDATED a" || p.GetAgentInfo().GetDescription() != fmt.Sprint("round ", round) {
				t.Errorf("told %s: %v", got, p)
			}
		}
		s.deregisters((round+2)%3, "a")
		for _, w := range append(all, one) {
			if got, p := told(t, w); got != "REMOVED a" || p != nil {
				t.Errorf("told %s: %v", got, p)
			}
		}
	}
	c := agoratest.Connect(t, agoratest.Direct{}, s.URL(0), "agent_id=talker", nil)
	for k, w := range all {
		if got, p := told(t, w); got != "ADDED talker" || p.GetAgentInfo().GetAddress() != s.addrs[k] {
			t.Errorf("told %s at edge %d: %v, want it to be reached at %s", got, k, p, s.addrs[k])
		}
	}
	c.Close(1000)
	s.toolbox(1, "box", startNode(t, &node{}))
	for _, w := range all {
		seen := map[string]bool{}
		for len(seen) < 2 {
			got, _ := told(t, w)
			seen[got] = true
		}
		if !seen["REMOVED talker"] || !seen["ADDED box"] {
			t.Errorf("told %v", seen)
		}
	}
}

// A change that is none for who is told is not told: the session of a node continues at another edge.
func TestASubscriberHearsNothingOfWhatIsNoChange(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	n := startNode(t, &node{})
	s.registered(0, "a", n)
	w := s.subscribed(1, "", "w")
	tells(t, w, "ADDED a")
	s.updates(2, "a", n, "")
	s.StopEdge(0) // others adopt its nodes
	await.True(t, "another edge has the node", func() bool {
		return s.door(1).Stats().Nodes.Load()+s.door(2).Stats().Nodes.Load() == 1
	})
	s.registered(1, "b", startNode(t, &node{}))
	tells(t, w, "ADDED b")
}

// What a subscriber does not read does not add up: it learns how the nodes are then, and nobody waits for it.
func TestASlowSubscriberIsToldHowNodesAre(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	n := startNode(t, &node{})
	s.registered(0, "a", n)
	slow, quick := s.subscribed(0, "", "slow"), s.subscribed(0, "", "quick")
	tells(t, quick, "ADDED a")
	long := make([]byte, 3<<10)
	for i := range long {
		long[i] = 'x'
	}
	const rounds = 300
	for i := range rounds {
		s.updates(0, "a", n, fmt.Sprintf("%d%s", i, long))
		tells(t, quick, "UPDATED a")
	}
	s.deregisters(0, "a")
	tells(t, quick, "REMOVED a")
	for got, heard := "", 0; got != "REMOVED a"; heard++ {
		got, _ = told(t, slow)
		if heard >= rounds {
			t.Fatalf("it was told of %d of %d changes", heard, rounds)
		}
	}
}

func TestASubscriberEndsItsStreamsByAnyEdge(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	leaves := func(k int, as string, want bool, ids ...string) {
		t.Helper()
		out, err := s.gateway(k, "").Unsubscribe(t.Context(), &wire.UnsubscribeRequest{SubscriberId: as, NodeIds: ids})
		if err != nil || out.GetSuccess() != want || out.GetMessage() == "" {
			t.Errorf("%s unsubscribes: %v, %v", as, out, err)
		}
	}
	over := func(w subscriptionStream) {
		t.Helper()
		if u, err := w.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream goes on: %v, %v", u, err)
		}
	}
	leaves(0, "nobody", false)
	here, there, other := s.subscribed(0, "", "w"), s.subscribed(1, "", "w"), s.subscribed(1, "", "v")
	leaves(0, "w", true)
	over(here)
	over(there)
	some, most := s.subscribed(1, "", "some", "a", "b"), s.subscribed(1, "", "most")
	leaves(0, "some", true, "a", "c")
	leaves(0, "most", true, "a")
	s.registered(0, "a", startNode(t, &node{}))
	tells(t, other, "ADDED a")
	s.registered(0, "b", startNode(t, &node{}))
	tells(t, some, "ADDED b")
	tells(t, most, "ADDED b")
	tells(t, other, "ADDED b")
	leaves(0, "some", true, "b")
	over(some)
	leaves(1, "some", false)
	leaves(1, "most", true)
	over(most)
}

// keys takes a token for the name of a principal, which may be agents whose ids begin so.
type keys struct{}

func (keys) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	if c.Token == "" {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "there is no token")
	}
	return edge.Principal{Name: c.Token, Agents: []string{c.Token + "*"}}, nil
}

func TestASubscriptionIsItsPrincipals(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Auth: keys{}}}})
	w := s.subscribed(0, "anna", "anna-1")
	_, err := s.gateway(1, "bob").Unsubscribe(t.Context(), &wire.UnsubscribeRequest{SubscriberId: "anna-1"})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("who it is not unsubscribes: %v", err)
	}
	for token, as := range map[string]string{"bob": "anna-1", "anna": ""} {
		out, err := s.gateway(0, token).SubscribeToUpdates(t.Context(), &wire.UpdateSubscriptionRequest{SubscriberId: as})
		if err == nil {
			_, err = out.Recv()
		}
		if want := map[string]codes.Code{"bob": codes.PermissionDenied, "anna": codes.InvalidArgument}[token]; status.Code(err) != want {
			t.Errorf("%s subscribes as %q: %v, want %v", token, as, err, want)
		}
	}
	if out, err := s.gateway(1, "anna").Unsubscribe(t.Context(), &wire.UnsubscribeRequest{SubscriberId: "anna-1"}); err != nil || !out.GetSuccess() {
		t.Errorf("its own: %v, %v", out, err)
	}
	if _, err := w.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
}

// A subscriber goes to another edge when its own is drained, and misses nothing there.
func TestASubscriptionEndsWithItsEdge(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	w := s.subscribed(0, "", "w")
	s.StopEdge(0)
	if _, err := w.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("it ends with %v", err)
	}
	s.registered(1, "a", startNode(t, &node{}))
	tells(t, s.subscribed(1, "", "w"), "ADDED a")
}

// Nodes come, change and go at all edges at once: of each one every stream tells a story that can be.
func TestWhatIsToldOfANodeIsOneStory(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	var streams []subscriptionStream
	for k := range 3 {
		streams = append(streams, s.subscribed(k, "", "w"))
	}
	ids := []string{"a", "b", "c", "d"}
	var churn sync.WaitGroup
	for i, id := range ids {
		n := startNode(t, &node{})
		churn.Go(func() {
			for round := range 8 {
				s.registered((i+round)%3, id, n)
				s.updates((i+2*round)%3, id, n, fmt.Sprint("round ", round))
				if round < 7 {
					s.deregisters(round%3, id)
				}
			}
		})
	}
	churn.Wait()
	for k, w := range streams {
		there, last := map[string]bool{}, map[string]string{}
		for len(last) < len(ids) {
			got, p := told(t, w)
			kind, id, _ := strings.Cut(got, " ")
			if there[id] != (kind != "ADDED") || (p == nil) != (kind == "REMOVED") {
				t.Fatalf("edge %d tells %s of one that is there: %v", k, got, there[id])
			}
			if there[id] = kind != "REMOVED"; p.GetAgentInfo().GetDescription() == "round 7" {
				last[id] = got
			}
		}
	}
}

// Who may not see the directory may not watch it.
func TestWhoMayNotSeeTheDirectoryIsNotTold(t *testing.T) {
	t.Parallel()
	rules, err := policy.Parse([]byte("rules:\n- {name: all, who: {names: [anna]}, agents: [\"*\"]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := new(policy.Policy)
	p.Set(rules)
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Auth: keys{}, Policy: p}}})
	out, err := s.gateway(0, "anna").SubscribeToUpdates(t.Context(), &wire.UpdateSubscriptionRequest{SubscriberId: "anna"})
	if err == nil {
		_, err = out.Recv()
	}
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("subscribed: %v", err)
	}
}
