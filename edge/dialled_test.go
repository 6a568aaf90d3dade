package edge_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// A heartbeat reaches the connection of its agent by whatever edge it comes, and an edge that can have the session
// where no other one has it.
func TestASignOfLifeReachesTheEdgeThatHoldsAnAgent(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2, Leases: []time.Duration{endless}, Node: edge.Config{Lease: watchful, Patience: await.Long}})
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	registered(t, c, 0, "plain")
	for k := range 2 {
		if err := actor(t, c, k).Alive(t.Context(), "node"); err != nil {
			t.Errorf("at edge %d: %v", k, err)
		}
		if got := c.Lines(0).Heard("node"); got != k+1 {
			t.Errorf("after that at edge %d its connection was told %d times", k, got)
		}
		for _, id := range []agora.AgentID{"nobody", "plain"} {
			if err := actor(t, c, k).Alive(t.Context(), id); code(err) != agora.AgentNotFound {
				t.Errorf("of %s at edge %d: %v", id, k, err)
			}
		}
	}
	there := actor(t, c, 1)
	c.CutEdge(0)
	if err := there.Alive(t.Context(), "node"); err != nil {
		t.Errorf("of an agent whose edge is gone: %v", err)
	}
	if got := c.Lines(1); got.Heard("node") != 1 || got.Adopted() != 1 {
		t.Errorf("the other edge was told %d times, and has adopted it %d times", got.Heard("node"), got.Adopted())
	}
}

// Session.Timeout counts from the last sign of life, however that came.
func TestASignOfLifeKeepsAQuietConnection(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2, Node: edge.Config{Lease: time.Minute, Timeout: 2 * time.Second}})
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	n.Mute(true)
	there := actor(t, c, 1)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		if err := there.Alive(t.Context(), "node"); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.Hellos(); got != 1 {
		t.Errorf("it was dialled %d times, want once", got)
	}
	await.True(t, "it is given up when no sign comes any more", func() bool { return n.Hellos() > 1 })
}

func TestWhatCantReachTheEdgeThatHoldsAnAgentIsUnavailable(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2, Node: edge.Config{Lease: time.Minute, Patience: 200 * time.Millisecond, Answer: time.Second}})
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	there := actor(t, c, 1)
	for how, cut := range map[string]func(int){"the log": c.CutLog, "presence": c.CutPresence} {
		cut(1)
		if err := there.Alive(t.Context(), "node"); code(err) != agora.Unavailable {
			t.Errorf("%s is away: a sign of life is %v", how, err)
		}
		if err := there.Update(t.Context(), agora.Agent{ID: "node"}); code(err) != agora.Unavailable {
			t.Errorf("%s is away: another card is %v", how, err)
		}
		c.MendEdge(1)
		await.True(t, "it reaches it again", func() bool { return there.Alive(t.Context(), "node") == nil })
	}
}

// An agent ends its session by an edge that does not hold it: nothing is left of it there, at once.
func TestAnAgentEndsItsSessionByAnyEdge(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2, Grace: time.Hour})
	reader, _ := registered(t, c, 1, "reader")
	watcher, _ := registered(t, c, 1, "watcher")
	watcher.Send(`{"type":"space.join","space":"agent.status"}`)
	watcher.Await(`{"type":"space.joined"}`)
	n := agoratest.StartLineNode(t)
	for k := range 2 {
		dialled(t, c, 0, "node", n)
		if _, err := actor(t, c, 0).Do(t.Context(), "node", asCommand(edge.Send, to("reader", agora.Start, "s", `{}`))); err != nil {
			t.Fatal(err)
		}
		reader.Expect(`{"type":"message","from":"node","stream_id":"s"}`)
		if err := actor(t, c, k).End(t.Context(), "node"); err != nil {
			t.Fatalf("at edge %d: %v", k, err)
		}
		if v := holder(t, c, 1, "node"); v.State != "away" {
			t.Errorf("ended at edge %d it is %+v", k, v)
		}
		dialled(t, c, 1, "successor", n)
		if err := actor(t, c, k).End(t.Context(), "successor"); err != nil {
			t.Errorf("its successor at edge %d: %v", k, err)
		}
		await.True(t, "its connection is closed", func() bool { return n.Connections() == 0 })
		reader.Expect(`{"type":"error","code":"STREAM_ABORTED","stream_id":"s"}`)
		for _, who := range []string{"node", "successor"} {
			for _, status := range []agora.AgentStatus{agora.Online, agora.Offline} {
				watcher.Expect(`{"type":"space.event","data":{"agent":"` + who + `","status":"` + string(status) + `","timestamp":"<any>"}}`)
			}
		}
	}
	registered(t, c, 0, "plain")
	for _, id := range []agora.AgentID{"node", "nobody", "plain"} {
		if err := actor(t, c, 1).End(t.Context(), id); code(err) != agora.AgentNotFound {
			t.Errorf("%s, which has no session that an edge has dialled: %v", id, err)
		}
	}
}

// The session of an agent that has lost its edge, or its connection, is ended as well: it is not dialled any more, and
// its address is free.
func TestAnAgentEndsASessionThatNoEdgeHolds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"its edge is gone", "its connection is lost"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := dialling(t, agoratest.Options{Edges: 2, Grace: time.Hour, Leases: []time.Duration{endless}})
			n := agoratest.StartLineNode(t)
			dialled(t, c, 0, "node", n)
			there := actor(t, c, 1)
			c.Lines(1).Between(func() { <-t.Context().Done() }) // it is not adopted meanwhile
			if how == "its edge is gone" {
				c.CutEdge(0)
			} else {
				c.Lines(0).Between(func() { <-t.Context().Done() })
				n.Stop()
				await.True(t, how, func() bool { return holder(t, c, 1, "node").State == "grace" })
				n.Start()
			}
			if err := there.End(t.Context(), "node"); err != nil {
				t.Fatal(err)
			}
			if v := holder(t, c, 1, "node"); v.State != "away" {
				t.Errorf("it is %+v", v)
			}
			dialled(t, c, 1, "successor", n)
		})
	}
}

// A card that comes by another edge is kept as it came, to the byte.
func TestAnAgentsCardIsReplacedByAnyEdge(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2})
	watcher, _ := registered(t, c, 1, "watcher")
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	watcher.Send(`{"type":"space.join","space":"agent.status"}`)
	watcher.Await(`{"type":"space.joined"}`)
	for k := range 2 {
		card := agora.Agent{
			ID: "node", Name: "another", Dialect: "line", Domain: string(rune('a' + k)), Metadata: json.RawMessage("{ \"x\" :\t\"<>\" }"),
			Skills:       []agora.Skill{{Name: "s", Schema: json.RawMessage(`{ "type" : "object" }`)}},
			Registration: agora.Registration{Media: "application/x", Body: []byte{0xff, byte(k)}},
		}
		if err := actor(t, c, k).Update(t.Context(), card); err != nil {
			t.Fatalf("at edge %d: %v", k, err)
		}
		for at := range 2 {
			got, err := actor(t, c, at).Directory().Card(t.Context(), "node")
			if err != nil || got.Name != "another" || got.Domain != card.Domain || string(got.Metadata) != string(card.Metadata) ||
				string(got.Skills[0].Schema) != string(card.Skills[0].Schema) || string(got.Registration.Body) != string(card.Registration.Body) {
				t.Errorf("edge %d shows %+v, %v", at, got, err)
			}
		}
		watcher.Expect(`{"type":"space.event","data":{"agent":"node","status":"updated","timestamp":"<any>"}}`)
	}
	if err := actor(t, c, 1).Update(t.Context(), agora.Agent{ID: "nobody"}); code(err) != agora.AgentNotFound {
		t.Errorf("of nobody: %v", err)
	}
	large := agora.Agent{ID: "node", Registration: agora.Registration{Body: make([]byte, 1<<20)}}
	if err := actor(t, c, 1).Update(t.Context(), large); code(err) != agora.InvalidRequest {
		t.Errorf("too large: %v", err)
	}
}

func TestAnAgentThatAnEdgeHasDialledIsItsPrincipalsAtEveryEdge(t *testing.T) {
	t.Parallel()
	d := newDesk(map[string]edge.Principal{
		"owner": {Name: "owner", Agents: []string{"node"}, Source: "desk"},
		"thief": {Name: "thief", Any: true, Source: "desk"},
		"other": {Name: "other", Agents: []string{"other"}, Source: "desk"},
	})
	c := dialling(t, agoratest.Options{Edges: 2, Node: edge.Config{Auth: d}})
	as := func(k int, token string) *edge.Actor {
		t.Helper()
		a, err := c.Node(k).Authenticate(t.Context(), edge.Credentials{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	n := agoratest.StartLineNode(t)
	if err := c.Lines(0).Register(t.Context(), as(0, "owner"), "node", n.Address()); err != nil {
		t.Fatal(err)
	}
	for k := range 2 {
		for _, who := range []string{"thief", "other"} {
			a := as(k, who)
			for what, err := range map[string]error{
				"Alive": a.Alive(t.Context(), "node"), "Update": a.Update(t.Context(), agora.Agent{ID: "node"}), "End": a.End(t.Context(), "node"),
			} {
				if code(err) != agora.Forbidden {
					t.Errorf("%s by %s at edge %d: %v", what, who, k, err)
				}
			}
		}
	}
	if err := as(1, "owner").End(t.Context(), "node"); err != nil || c.Lines(0).Heard("node") != 0 {
		t.Errorf("its own: %v; and its connection was told of %d signs of life", err, c.Lines(0).Heard("node"))
	}
}

// Who is refused learns whether it is for the id or for the address.
func TestATakenAddressIsToldFromATakenID(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2})
	n, other := agoratest.StartLineNode(t), agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	for k := range 2 {
		err := c.Lines(k).Register(t.Context(), actor(t, c, k), "other", n.Address())
		if at, taken := edge.AddressTaken(err); code(err) != agora.AgentExists || !taken || at != n.Address() {
			t.Errorf("another agent at its address, by edge %d: %v; AddressTaken = %q, %t", k, err, at, taken)
		}
		for _, address := range []string{n.Address(), other.Address()} {
			err := c.Lines(k).Register(t.Context(), actor(t, c, k), "node", address)
			if at, taken := edge.AddressTaken(err); code(err) != agora.AgentExists || taken {
				t.Errorf("another agent of its id, by edge %d: %v; AddressTaken = %q, %t", k, err, at, taken)
			}
		}
	}
	if _, taken := edge.AddressTaken(errors.New("another")); taken {
		t.Error("any error says that an address is taken")
	}
}

func TestAHeartbeatOfAnAgentThatIsHeldChangesNothing(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2})
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	before := holder(t, c, 1, "node")
	for k := range 2 {
		if err := actor(t, c, k).Adopt(t.Context(), "node"); err != nil {
			t.Errorf("at edge %d: %v", k, err)
		}
	}
	if after := holder(t, c, 1, "node"); after.Epoch != before.Epoch || n.Hellos() != 1 {
		t.Errorf("the session is %+v, was %+v", after, before)
	}
	registered(t, c, 0, "plain")
	if err := actor(t, c, 1).Adopt(t.Context(), "plain"); code(err) != agora.AgentNotFound {
		t.Errorf("of an agent that no edge has dialled: %v", err)
	}
}
