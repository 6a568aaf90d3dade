package edge_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

func TestOfTwoConnectionsAtTheSameInstantExactlyOneWinsEachTime(t *testing.T) {
	t.Parallel()
	// A pause of the machine is no sign that the first one is dead.
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{Probe: time.Minute}})
	var side sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i := range rounds {
		turns <- struct{}{}
		side.Go(func() {
			defer func() { <-turns }()
			contend(t, c, fmt.Sprint("agent-", i))
		})
	}
	side.Wait()
}

// contend connects an id at two edges at the same instant; one of them must be told that the other has it.
func contend(t *testing.T, c *agoratest.Cluster, id string) {
	var first [2]agoratest.Frame
	var conns [2]*agoratest.Client
	var both sync.WaitGroup
	ready := make(chan struct{})
	for k := range 2 {
		both.Go(func() {
			<-ready
			conn, _, err := agoratest.TryConnect(t, agoratest.Direct{}, c.URL(k), "agent_id="+url.QueryEscape(id), nil)
			if err != nil {
				t.Errorf("%s at edge %d: %v", id, k, err)
				return
			}
			conns[k] = conn
			first[k], _ = conn.Next(await.Long)
		})
	}
	close(ready)
	both.Wait()
	won := 0
	for k, f := range first {
		switch {
		case f.Type() == "agent.registered":
			won++
		case f.Text("code") != "AGENT_EXISTS":
			t.Errorf("%s at edge %d got %q, want to be registered or AGENT_EXISTS", id, k, f)
		}
	}
	if won != 1 {
		t.Errorf("%s was registered %d times: %q", id, won, first)
	}
	for _, conn := range conns {
		if conn != nil {
			conn.Drop()
		}
	}
}

func TestAReapedEdgesAgentsLeaveTheirSpacesExactlyOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	const lease = 8 * time.Second // of those that reap: they do so five times in it, and leave what may have come in its last half
	c := start(t, agoratest.Options{Edges: 4, Node: leased(lease), Leases: []time.Duration{lease / 4}, Grace: 300 * time.Millisecond})
	var members []*agoratest.Client
	join := func(k int, id string) {
		a, _ := registered(t, c, k, id)
		a.Send(`{"type":"space.join","id":"j","space":"room"}`)
		a.Await(`{"type":"space.joined"}`)
		members = append(members, a)
	}
	for k := 1; k < 4; k++ { // each of these edges reaps
		join(k, fmt.Sprint("stays-", k))
	}
	const gone = 20
	for i := range gone {
		join(0, fmt.Sprint("goes-", i))
	}
	c.CutEdge(0)
	for _, m := range members[:3] {
		left := map[string]int{}
		for len(left) < gone {
			f := m.Await(`{"type":"space.members","joined":null}`)
			left[f.Text("left")]++
		}
		m.Send(`{"type":"space.publish","id":"p","space":"room","data":{"text":"last"}}`)
		for f := m.Take("the event"); f.Type() != "space.event"; f = m.Take("the event") {
			if f.Raw("joined") == "null" {
				left[f.Text("left")]++
			}
		}
		for id, n := range left {
			if n != 1 {
				t.Errorf("%s left %d times", id, n)
			}
		}
	}
}

func TestAZombieThatWakesPublishesNothingAndClosesItsSockets(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	const lease = 6 * time.Second
	c := start(t, agoratest.Options{Leases: []time.Duration{lease, 2 * lease}}) // a frozen one is asked for as long as the asker's lease
	receiver, _ := registered(t, c, 2, "receiver")
	old, welcome := registered(t, c, 0, "a")
	stored(old, "receiver", 1)
	c.HoldLog(0, true)
	old.Send(numbered("receiver", 2), `{"type":"space.list"}`) // on its way into the log when the edge freezes
	old.Expect(`{"type":"space.list"}`)
	begin := time.Now()
	c.Freeze(0, true)
	old.Send(numbered("receiver", 3), `{"type":"send","to":"receiver","payload":"zombie"}`) // read past the lease
	next, _ := registered(t, c, 1, "a", token(welcome))
	if d := time.Since(begin); d < lease/2 { // of which a third or somewhat more may have passed when it froze
		t.Errorf("taken over after %v: a frozen edge costs its lease of %v, no less", d, lease)
	}
	next.Send(numbered("receiver", 2), numbered("receiver", 3), numbered("receiver", 4))
	got(receiver, 1, 2, 3, 4) // the fence is in place
	c.HoldLog(0, false)
	c.Freeze(0, false)
	old.AwaitClosed(4001)
	next.Await(`{"type":"receipt","n":4}`)
	stored(next, "receiver", 5)
	got(receiver, 5)
	receiver.Barrier() // and nothing else came
}

// Edges look after their claims: no two go on to hold one.
func TestTwoOwnersForAMomentSettle(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Leases: []time.Duration{watchful}})
	sender, _ := registered(t, c, 2, "sender")
	old, _ := registered(t, c, 0, "a")
	kept, _ := registered(t, c, 0, "b")
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	// A failover that lost two writes, and another edge that claims one of the ids before anybody notices.
	if n := raw.Del(t.Context(), "agora:1:{a:default.a}:rec", "agora:1:{a:default.b}:rec").Val(); n != 2 {
		t.Fatalf("%d records were there, want 2", n)
	}
	next, _ := registered(t, c, 1, "a")
	old.Until("one of them is closed", func() bool { return old.Gone() != nil || next.Gone() != nil })
	winner := next
	if next.Gone() != nil {
		winner = old
	}
	stored(sender, "a", 1)
	got(winner, 1)
	// The other claim was asserted again.
	sender.Until("b is known again", func() bool {
		sender.Send(`{"type":"send","to":"b","id":"x","payload":1}`)
		return sender.Take("an answer").Type() == "receipt"
	})
	kept.Await(`{"type":"message","from":"sender"}`)
}

func TestAnEdgeWhoseIDAnotherHasTakenEndsItsServiceAndSaysSo(t *testing.T) {
	t.Parallel()
	superseded := make(chan error, 2)
	c := start(t, agoratest.Options{
		Edges: 2, Node: edge.Config{Superseded: func(err error) { superseded <- err }},
		Leases: []time.Duration{2 * time.Second, 0, watchful},
	})
	old, _ := registered(t, c, 0, "old")
	c.Freeze(0, true)
	twin := c.AddTwin(0) // it waits for the lease to be over
	c.Freeze(0, false)
	if err := await.Recv(t, "the first edge notices that another has its id", superseded); !strings.Contains(err.Error(), `another edge runs under the id "edge-0"`) {
		t.Errorf("superseded: %v", err)
	}
	old.Until("the first edge is not ready", func() bool { return c.Node(0).Ready() != nil })
	b, _ := registered(t, c, twin, "b")
	old.Until("the second one serves on", func() bool { return c.Node(twin).Ready() == nil })
	stored(b, "old", 1)
	select {
	case err := <-superseded:
		t.Errorf("another edge was superseded: %v", err)
	default:
	}
}
