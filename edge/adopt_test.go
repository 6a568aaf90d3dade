package edge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/dial"
	"github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// dialling starts a cluster whose edges dial agents, and take others for gone soon.
func dialling(t *testing.T, o agoratest.Options) *agoratest.Cluster {
	t.Helper()
	o.Lines = true
	if o.Node.Lease == 0 {
		o.Node.Lease = watchful
	}
	return start(t, o)
}

// dialled has an edge dial an agent and open a session for it.
func dialled(t *testing.T, c *agoratest.Cluster, k int, id agora.AgentID, n *agoratest.LineNode) {
	t.Helper()
	was := n.Hellos()
	if err := c.Lines(k).Register(t.Context(), actor(t, c, k), id, n.Address()); err != nil {
		t.Fatalf("edge %d dials %s: %v", k, id, err)
	}
	await.True(t, "it is said hello to", func() bool { return n.Hellos() > was })
}

// mailed has an edge store messages for an agent, numbered.
func mailed(t *testing.T, c *agoratest.Cluster, k int, id agora.AgentID, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		if _, err := actor(t, c, k).Do(t.Context(), "sender", asCommand(edge.Send, to(id, agora.Whole, "", fmt.Sprint(n)))); err != nil {
			t.Fatalf("send %d to %s: %v", n, id, err)
		}
	}
}

// holder returns by which edge an agent's session is held, and under which session and epoch.
func holder(t *testing.T, c *agoratest.Cluster, k int, id agora.AgentID) operator.AgentView {
	t.Helper()
	v, err := operator.New(c.Node(k)).InspectAgent(t.Context(), agora.DefaultTenant, id)
	if err != nil && code(err) != agora.Unavailable {
		t.Fatalf("look at %s: %v", id, err)
	}
	return v
}

// adopted waits until one of some edges holds the session of an agent with its one connection, and returns which.
func adopted(t *testing.T, c *agoratest.Cluster, id agora.AgentID, n *agoratest.LineNode, among ...int) (by int) {
	t.Helper()
	await.True(t, fmt.Sprintf("%s is adopted by one of edges %d", id, among), func() bool {
		v := holder(t, c, among[0], id)
		for _, k := range among {
			if v.Live != nil && v.Live.Begun && v.Edge == c.Node(k).Config().ID && n.Connections() == 1 {
				by = k
				return true
			}
		}
		return false
	})
	return by
}

// What an agent that is dialled had continues at another edge when its own is killed: the session, its spaces, its
// streams, and each message once.
func TestAnAgentIsDialledByAnotherEdgeWhenItsOwnIsKilled(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Leases: []time.Duration{endless}})
	n := agoratest.StartLineNode(t)
	reader, _ := registered(t, c, 1, "reader")
	dialled(t, c, 0, "node", n)
	ctx := t.Context()
	if _, err := actor(t, c, 2).Do(ctx, "node", edge.Command{Verb: edge.Join, Space: "room"}); err != nil {
		t.Fatal(err)
	}
	speaks := func(m agora.Message) {
		t.Helper()
		m.Indexed = true
		if _, err := actor(t, c, 2).Do(ctx, "node", asCommand(edge.Send, m)); err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
	}
	speaks(to("reader", agora.Start, "s", `{}`))
	mailed(t, c, 1, "node", 1, 2)
	n.Await("sender 1", "sender 2")
	before := holder(t, c, 1, "node")
	c.CutEdge(0)
	mailed(t, c, 1, "node", 3)
	by := adopted(t, c, "node", n, 1, 2)
	await.True(t, "it hears the hello", func() bool { return n.Hellos() > 1 && c.Lines(1).Adopted()+c.Lines(2).Adopted() > 0 }) // which its session need not wait for
	after := holder(t, c, 1, "node")
	if after.Session != before.Session || after.Epoch <= before.Epoch || c.Lines(1).Adopted()+c.Lines(2).Adopted() != 1 || n.Hellos() != 2 {
		t.Errorf("adopted as %+v, was %+v; %d times said hello to", after, before, n.Hellos())
	}
	chunk := to("reader", agora.Chunk, "s", `"x"`)
	chunk.Index = 1
	speaks(chunk)
	end := to("reader", agora.End, "s", "")
	end.Index = 2
	speaks(end)
	reader.Expect(`{"type":"message","from":"node","stream_id":"s"}`, `{"type":"message_chunk","chunk":"x"}`, `{"type":"message_end"}`)
	registered(t, c, by, "member")
	if _, err := actor(t, c, by).Do(ctx, "member", edge.Command{Verb: edge.Join, Space: "room"}); err != nil {
		t.Fatal(err)
	}
	if _, err := actor(t, c, by).Do(ctx, "member", edge.Command{Verb: edge.Publish, Space: "room", Data: json.RawMessage(`{"event":1}`)}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "it has all, the event included", func() bool {
		got := strings.Join(n.Got(), "\n")
		return strings.Contains(got, "sender 3") && strings.Contains(got, `"event":1`)
	})
	if again := n.Repeated(); len(again) > 0 {
		t.Errorf("came twice: %q", again)
	}
}

func TestAnAgentIsDialledByAnotherEdgeBeforeItsOwnHasDrained(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2, Node: leased(time.Minute)}) // no edge is taken for gone here
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	mailed(t, c, 1, "node", 1)
	n.Await("sender 1")
	before := holder(t, c, 1, "node")
	told := make(chan struct{})
	c.Lines(1).Between(sync.OnceFunc(func() {
		if !await.Within(await.Long, func() bool { return n.Connections() == 2 }) {
			t.Error("the edge that drains has closed its connection before another one goes on")
		}
		close(told)
	}))
	c.StopEdge(0)
	<-told
	mailed(t, c, 1, "node", 2)
	n.Await("sender 1", "sender 2")
	adopted(t, c, "node", n, 1)
	if after := holder(t, c, 1, "node"); after.Session != before.Session {
		t.Errorf("session %s goes on as %s", before.Session, after.Session)
	}
	if again := n.Repeated(); len(again) > 0 {
		t.Errorf("came twice: %q", again)
	}
}

// There is nobody to wait for: the session is in its grace, for who comes in that time.
func TestTheOnlyEdgeDrainsWithoutWaitingForOthers(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 1})
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	c.StopEdge(0)
	await.True(t, "it is closed", func() bool { return n.Connections() == 0 })
	k := c.AddEdge()
	adopted(t, c, "node", n, k)
	mailed(t, c, k, "node", 1)
	n.Await("sender 1")
}

// Edges race: however often, one has the session, and the others close what they have dialled.
func TestOneEdgeAdoptsASession(t *testing.T) {
	t.Parallel()
	nodes := 100
	if testing.Short() {
		nodes = 10
	}
	c := dialling(t, agoratest.Options{Edges: 4, Leases: []time.Duration{endless}})
	all := make([]*agoratest.LineNode, nodes)
	for i := range all {
		all[i] = agoratest.StartLineNode(t)
		dialled(t, c, 0, agora.AgentID(fmt.Sprint("node-", i)), all[i])
	}
	c.CutEdge(0)
	hurry(t, c, nodes, 1, 2, 3)
	for i, n := range all {
		id := agora.AgentID(fmt.Sprint("node-", i))
		adopted(t, c, id, n, 1, 2, 3)
		mailed(t, c, 1, id, 1)
		n.Await("sender 1")
		if n.Hellos() != 2 {
			t.Errorf("%s was said hello to %d times, want twice", id, n.Hellos())
		}
	}
	if got := c.Lines(1).Adopted() + c.Lines(2).Adopted() + c.Lines(3).Adopted(); got != nodes {
		t.Errorf("%d sessions were adopted %d times", nodes, got)
	}
}

// hurry has heartbeats of all nodes come to edges at the same instant.
func hurry(t *testing.T, c *agoratest.Cluster, nodes int, edges ...int) {
	t.Helper()
	var all sync.WaitGroup
	for _, k := range edges {
		for i := range nodes {
			all.Go(func() {
				id := agora.AgentID(fmt.Sprint("node-", i))
				if err := actor(t, c, k).Adopt(t.Context(), id); err != nil {
					t.Errorf("a heartbeat of %s at edge %d: %v", id, k, err)
				}
			})
		}
	}
	all.Wait()
}

// An edge that has dialled, and comes late, finds the session with another: also where its agent is slow to answer.
func TestAnEdgeThatComesLateAdoptsNothing(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Leases: []time.Duration{endless}, Node: edge.Config{Lease: watchful, Probe: 200 * time.Millisecond}})
	n := agoratest.StartLineNode(t)
	n.Mute(true)
	dialled(t, c, 0, "node", n)
	late, goOn := make(chan struct{}), make(chan struct{})
	c.Lines(1).Between(sync.OnceFunc(func() {
		close(late)
		<-goOn
	}))
	c.CutEdge(0)
	var first sync.WaitGroup
	first.Go(func() {
		if err := actor(t, c, 1).Adopt(t.Context(), "node"); err != nil {
			t.Errorf("the one that comes late: %v", err)
		}
	})
	<-late
	await.True(t, "the other one has it", func() bool {
		err := actor(t, c, 2).Adopt(t.Context(), "node")
		return err == nil && c.Lines(2).Adopted() == 1
	})
	before := holder(t, c, 2, "node")
	close(goOn)
	first.Wait()
	if after := holder(t, c, 2, "node"); c.Lines(1).Adopted() != 0 || after.Epoch != before.Epoch {
		t.Errorf("adopted twice: under %d at %s, then %d at %s", before.Epoch, before.Edge, after.Epoch, after.Edge)
	}
}

func TestAnAgentThatOneEdgeCantReachIsAdoptedByAnother(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Leases: []time.Duration{endless}, Tune: func(k int, cfg *edge.Config) {
		if k == 1 {
			local, err := dial.ParseList([]string{"127.0.0.0/8"})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Dialer = dial.New(dial.Config{Deny: &local})
		}
	}})
	n := agoratest.StartLineNode(t)
	if err := c.Lines(1).Register(t.Context(), actor(t, c, 1), "node", n.Address()); code(err) != agora.Forbidden {
		t.Errorf("registered where its address is denied: %v", err)
	}
	dialled(t, c, 0, "node", n)
	c.CutEdge(0)
	if err := actor(t, c, 1).Adopt(t.Context(), "node"); err != nil && code(err) != agora.Forbidden {
		t.Errorf("adopted where its address is denied: %v", err)
	}
	adopted(t, c, "node", n, 2)
}

// A session whose agent nobody can dial ends with its grace, and its address is free.
func TestAnAgentThatNobodyReachesEndsWithItsGrace(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2, Grace: 2 * time.Second, Node: leased(2 * time.Second)})
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	n.Stop()
	await.True(t, "the session is over", func() bool { return holder(t, c, 1, "node").State == "away" })
	if err := actor(t, c, 1).Adopt(t.Context(), "node"); code(err) != agora.AgentNotFound {
		t.Errorf("adopted though it is over: %v", err)
	}
	n.Start()
	dialled(t, c, 1, "other", n)
}

func TestAnAgentThatIsBackIsDialledAgainWithinItsGrace(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2})
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	before := holder(t, c, 1, "node")
	n.Stop()
	await.True(t, "its connection is lost", func() bool { return holder(t, c, 1, "node").State == "grace" })
	n.Start()
	adopted(t, c, "node", n, 0, 1)
	if after := holder(t, c, 1, "node"); after.Session != before.Session {
		t.Errorf("session %s goes on as %s", before.Session, after.Session)
	}
}

// The owner of an address is the first of those that claim it at the same instant, at whatever edge; the other learns
// which address is taken.
func TestAnAddressIsOneAgents(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2, Node: edge.Config{Lease: watchful, Probe: time.Minute}})
	for i := range rounds {
		n := agoratest.StartLineNode(t)
		var errs [2]error
		var both sync.WaitGroup
		for k := range 2 {
			who := actor(t, c, k)
			both.Go(func() {
				errs[k] = c.Lines(k).Register(t.Context(), who, agora.AgentID(fmt.Sprintf("%d-at-%d", i, k)), n.Address())
			})
		}
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("%s was given to both or neither: %v, %v", n.Address(), errs[0], errs[1])
		}
		err := agora.AsError(errors.Join(errs[0], errs[1]))
		if err.Code != agora.AgentExists || !strings.Contains(err.Message, n.Address()) {
			t.Errorf("the other one is told %v", err)
		}
	}
}

// An address is its agent's as long as its session, or until that has another one; and whoever it is has it again after
// that.
func TestAnAddressIsFreeWhenItsSessionIsOver(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2})
	n, other := agoratest.StartLineNode(t), agoratest.StartLineNode(t)
	dialled(t, c, 0, "a", n)
	if err := c.Lines(1).Register(t.Context(), actor(t, c, 1), "b", n.Address()); code(err) != agora.AgentExists {
		t.Fatalf("the address of another: %v", err)
	}
	n.Say("bye")
	await.True(t, "the session is over", func() bool { return holder(t, c, 1, "a").State == "away" })
	dialled(t, c, 1, "b", n)
	n.Mute(true) // so that b's connection gives no sign of life, and b may come again
	cfg := c.Node(1).Config()
	if cfg.Probe > 10*time.Second {
		t.Fatalf("probes take %v", cfg.Probe)
	}
	dialled(t, c, 0, "b", other)
	n.Mute(false)
	dialled(t, c, 0, "a", n)
}

// Somebody else answers at the address of an agent that has died: it makes room, and is not dialled any more under its
// old name.
func TestADeadAgentsAddressIsAnothers(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2, Node: edge.Config{Lease: watchful, Probe: 200 * time.Millisecond}})
	for _, how := range []string{"its connection is lost", "it is silent"} {
		t.Run(how, func(t *testing.T) {
			id := agora.AgentID(how)
			n := agoratest.StartLineNode(t)
			dialled(t, c, 0, id, n)
			if how == "it is silent" {
				n.Mute(true)
			} else {
				c.Lines(0).Between(func() { <-t.Context().Done() }) // it is not dialled again meanwhile
				c.Lines(1).Between(func() { <-t.Context().Done() })
				defer c.Lines(0).Between(nil)
				defer c.Lines(1).Between(nil)
				n.Stop()
				await.True(t, how, func() bool { return holder(t, c, 1, id).State == "grace" })
				n.Start()
			}
			dialled(t, c, 1, "successor of "+id, n)
			n.Mute(false)
			await.True(t, "the session is over", func() bool { return holder(t, c, 1, id).State == "away" })
		})
	}
}

// Redis comes back empty: living edges tell it whom they have dialled and where, so that addresses stay their agents',
// and an edge that dies later leaves its agents to others.
func TestADialledSessionSurvivesThatRedisLosesEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := dialling(t, agoratest.Options{Node: leased(retold)})
	n := agoratest.StartLineNode(t)
	dialled(t, c, 0, "node", n)
	forget(c)
	await.True(t, "it is there again", func() bool { return holder(t, c, 1, "node").State == "online" })
	await.True(t, "its address is its own", func() bool {
		err := c.Lines(1).Register(t.Context(), actor(t, c, 1), "other", n.Address())
		if err == nil {
			t.Fatal("its address was given to another")
		}
		return code(err) == agora.AgentExists
	})
	c.CutEdge(0)
	adopted(t, c, "node", n, 1, 2)
	mailed(t, c, 1, "node", 1)
	n.Await("sender 1")
}

// Redis comes back empty, an edge tells it of a session that speaks, and dies before its lease is there again. The
// lease of that edge is renewed so seldom that this is nearly always so.
func TestADialledSessionSurvivesItsEdgeThatDiesBehindALoss(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := dialling(t, agoratest.Options{Leases: []time.Duration{endless}})
	n := agoratest.StartLineNode(t)
	reader, _ := registered(t, c, 1, "reader")
	dialled(t, c, 0, "node", n)
	forget(c)
	await.True(t, "the reader is there again", func() bool { return holder(t, c, 1, "reader").State == "online" })
	n.Say(`send reader "hello"`)
	reader.Expect(`{"type":"message","from":"node","payload":"hello"}`)
	c.CutEdge(0)
	adopted(t, c, "node", n, 1, 2)
	mailed(t, c, 1, "node", 1)
	n.Await("sender 1")
}

// The principal of an adopted session is the one that had it opened: what was taken from that, or has ended, is not
// adopted, nor what is another's.
func TestASessionIsAdoptedByTheRightsThatOpenedIt(t *testing.T) {
	t.Parallel()
	d := newDesk(map[string]edge.Principal{
		"good":    {Name: "good", Agents: []string{"good"}, ID: "1", Source: "desk"},
		"revoked": {Name: "revoked", Agents: []string{"revoked"}, ID: "2", Source: "desk"},
		"expired": {Name: "expired", Agents: []string{"expired"}, ID: "3", Source: "desk", Expires: time.Now().Add(time.Hour)},
		"thief":   {Name: "thief", Any: true, ID: "4", Source: "desk"},
		"sender":  {Name: "sender", Any: true, ID: "5", Source: "desk"},
	})
	c := dialling(t, agoratest.Options{Leases: []time.Duration{endless}, Node: edge.Config{Lease: watchful, Auth: d}})
	as := func(k int, token string) *edge.Actor {
		t.Helper()
		a, err := c.Node(k).Authenticate(t.Context(), edge.Credentials{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	nodes := map[string]*agoratest.LineNode{}
	for _, id := range []string{"good", "revoked", "expired"} {
		nodes[id] = agoratest.StartLineNode(t)
		if err := c.Lines(0).Register(t.Context(), as(0, id), agora.AgentID(id), nodes[id].Address()); err != nil {
			t.Fatal(err)
		}
		await.True(t, "it is said hello to", func() bool { return nodes[id].Hellos() == 1 })
	}
	if err := c.Lines(1).Register(t.Context(), as(1, "thief"), "other", nodes["good"].Address()); code(err) != agora.AgentExists {
		t.Errorf("another principal has the address: %v", err)
	}
	thief := as(1, "thief")
	late := as(1, "revoked")
	c.CutEdge(0)
	d.take("2", agora.Errorf(agora.Unauthorized, "it was taken back"))
	d.take("3", agora.Errorf(agora.Unauthorized, "it has ended"))
	if err := thief.Adopt(t.Context(), "good"); code(err) != agora.Forbidden {
		t.Errorf("another principal adopts: %v", err)
	}
	if err := late.Adopt(t.Context(), "revoked"); code(err) != agora.Unauthorized {
		t.Errorf("it adopts though its credentials were taken back: %v", err)
	}
	adopted(t, c, "good", nodes["good"], 1, 2)
	if v := holder(t, c, 1, "good"); v.Principal != "good" {
		t.Errorf("adopted as %+v", v)
	}
	for _, k := range []int{1, 2} {
		for _, id := range []agora.AgentID{"revoked", "expired"} {
			if v := holder(t, c, k, id); v.Edge == c.Node(1).Config().ID || v.Edge == c.Node(2).Config().ID {
				t.Errorf("%s was adopted: %+v", id, v)
			}
		}
	}
	if n := nodes["revoked"].Hellos() + nodes["expired"].Hellos(); n != 2 {
		t.Errorf("they were said hello to %d times, want once each", n)
	}
	d.take("1", agora.Errorf(agora.Unauthorized, "it was taken back"))
	await.True(t, "what was adopted ends with its credentials, and is not dialled again", func() bool {
		return nodes["good"].Connections() == 0 && holder(t, c, 1, "good").State == "grace"
	})
}
