package edge_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// movedAgent is an agent "moved" that has opened a stream to "receiver" at edge 2, where that is too, and went on with
// its session at edge 0. Edge 2 knows its older token.
type movedAgent struct {
	conn     *agoratest.Client
	receiver *agoratest.Client
	welcome  agoratest.Frame // of edge 0
}

func movesAgent(t *testing.T, c *agoratest.Cluster) movedAgent {
	t.Helper()
	receiver, _ := registered(t, c, 2, "receiver")
	first, welcome := registered(t, c, 2, "moved")
	opens(first, receiver)
	first.Drop()
	receiver.Until("it has left edge 2", func() bool { return c.Node(2).Stats().Sessions == 1 })
	next, welcome := registered(t, c, 0, "moved", token(welcome))
	return movedAgent{next, receiver, welcome}
}

// goesOn has the agent come to an edge with its last token, and go on with the stream.
func (m movedAgent) goesOn(t *testing.T, c *agoratest.Cluster, k int) {
	t.Helper()
	conn, welcome := registered(t, c, k, "moved", token(m.welcome))
	if welcome.Raw("resumed") != "true" {
		t.Errorf("welcomed by %s, want its session to go on", welcome)
	}
	conn.Send(`{"type":"send_end","to":"receiver","n":2,"stream_id":"s"}`)
	m.receiver.Expect(`{"type":"message_end","stream_id":"s"}`)
}

// An edge takes an agent over, and Redis loses everything before the session begins there: the agent has its last token
// from the edge that has handed over, and an edge at which it was earlier knows an older one.
func TestASessionGoesOnWhoseNextClaimIsLostWithRedis(t *testing.T) {
	t.Parallel()
	// Keys of the script that begins a session.
	hook := &meanwhile{texts: []string{"{a:default.moved}:rec", "{a:default.moved}:cancelled", "{a:default.moved}:lanes"}}
	c := start(t, agoratest.Options{Hook: hook, Node: leased(retold)})
	m := movesAgent(t, c)
	lose := func() { flush(t, c) }
	hook.do.Store(&lose)
	refused := asked(t, c, 1, "moved", token(m.welcome))
	m.conn.AwaitClosed(4001)
	refused.Await(`{"type":"error"}`)
	m.goesOn(t, c, 1)
}

// An edge has begun a session in Redis and does not have it yet, as the log is slow to say where delivery begins. Redis
// loses everything then.
func TestASessionGoesOnThatIsAboutToOpenWhenRedisLosesEverything(t *testing.T) {
	t.Parallel()
	var looked atomic.Bool
	hook := &meanwhile{texts: []string{"hmget", "{a:default.moved}:rec", "begun"}, answered: true}
	c := start(t, agoratest.Options{Hook: hook, Node: leased(retold)})
	m := movesAgent(t, c)
	m.conn.Drop()
	m.receiver.Until("it has left edge 0", func() bool { return c.Node(0).Stats().Sessions == 0 })
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	begun := func() string { return raw.HGet(t.Context(), "agora:1:{a:default.moved}:rec", "begun").Val() }
	before := begun()
	c.HoldLog(1, true)
	opening := asked(t, c, 1, "moved", token(m.welcome), after(1))
	m.receiver.Until("the session has begun", func() bool { return begun() != before })
	now := begun()
	look := func() { looked.Store(true) }
	hook.do.Store(&look)
	m.receiver.Until("an edge has looked what became of the session", looked.Load)
	flush(t, c)
	m.receiver.Until("edge 1 has told of it", func() bool { return begun() == now })
	opening.Drop()
	c.HoldLog(1, false)
	m.goesOn(t, c, 2)
}

// The edge that holds the session is the last to tell Redis of it, behind one that knows an older token.
func TestAnAgentIsNotRefusedByAnOlderTokenWhileRedisGathersWhatItLost(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(retold)})
	m := movesAgent(t, c)
	c.HoldPresence(0, true)
	forget(c)
	next := asked(t, c, 1, "moved", token(m.welcome))
	next.ExpectNone(during(retold / 4))
	c.HoldPresence(0, false)
	next.Expect(`{"type":"agent.registered","resumed":true}`)
	next.Send(`{"type":"send_end","to":"receiver","n":2,"stream_id":"s"}`)
	m.receiver.Expect(`{"type":"message_end","stream_id":"s"}`)
	m.conn.AwaitClosed(4001)
}

// The edge that holds the session dies together with Redis. One at which the agent was earlier knows that the session
// went on elsewhere, and tells Redis nothing of it: else the agent would be refused until its grace is over, and its
// receiver would not hear that the stream has ended.
func TestAnAgentWhoseEdgeDiesWithRedisIsNotRefusedByAnOlderToken(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	var looked atomic.Bool
	hook := &meanwhile{texts: []string{"hmget", "{a:default.moved}:rec", "begun"}, answered: true}
	c := start(t, agoratest.Options{Hook: hook, Node: edge.Config{Lease: retold, Search: time.Second}})
	m := movesAgent(t, c)
	look := func() { looked.Store(true) }
	hook.do.Store(&look)
	m.receiver.Until("edge 2 has looked what became of the session", looked.Load)
	c.CutEdge(0)
	forget(c)
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	m.receiver.Until("presence is whole", func() bool { return mark(t, raw) != "" })
	if _, welcome := registered(t, c, 1, "moved", token(m.welcome)); welcome.Raw("resumed") == "true" {
		t.Errorf("welcomed by %s, want a new session", welcome)
	}
	m.receiver.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"moved","stream_id":"s"}`)
}

// Redis loses everything once more before it is whole again. What edges had told it is lost with the rest, and a lease
// has to pass again.
func TestAnAgentKeepsItsSessionThoughRedisLosesEverythingTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(retold)})
	receiver, _ := registered(t, c, 1, "receiver")
	conn, welcome := registered(t, c, 0, "moved")
	opens(conn, receiver)
	conn.Drop()
	receiver.Until("it has left edge 0", func() bool { return c.Node(0).Stats().Sessions == 0 })
	flush(t, c)
	receiver.ExpectNone(during(retold * 3 / 4))
	c.HoldPresence(0, true)
	flush(t, c)
	next := asked(t, c, 1, "moved", token(welcome))
	next.ExpectNone(during(retold / 2)) // a lease has passed since the first loss
	c.HoldPresence(0, false)
	next.Expect(`{"type":"agent.registered","resumed":true}`)
}
