package edge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// forget restarts Redis without its data.
func forget(c *agoratest.Cluster) {
	c.Redis.Stop()
	c.Redis.Start()
}

// again is how soon somebody asks once more who was told to come again.
const again = 50 * time.Millisecond

// untilStored sends a numbered message as often as it is refused for the moment.
func untilStored(t *testing.T, from *agoratest.Client, to string, n int) {
	t.Helper()
	from.Until("it is stored", func() bool {
		from.Send(numbered(to, n))
		f := from.Take("a receipt")
		if f.Match(fmt.Sprintf(`{"type":"receipt","n":%d}`, n)) == "" {
			return true
		}
		if f.Text("code") != "UNAVAILABLE" {
			t.Fatalf("message %d to %s: %s, want UNAVAILABLE or a receipt", n, to, f)
		}
		<-time.After(again)
		return false
	})
}

func TestNobodyIsToldUnknownWronglyWhenRedisComesBackEmpty(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	const lease = retold
	c := start(t, agoratest.Options{Edges: 3, Node: leased(lease)})
	// None has written to another yet, so no edge remembers that anybody was there.
	var senders, members []*agoratest.Client
	const n = 6
	for i := range n {
		s, _ := registered(t, c, i%3, fmt.Sprint("sender-", i))
		m, _ := registered(t, c, (i+1)%3, fmt.Sprint("member-", i))
		m.Send(`{"type":"space.join","id":"j","space":"room"}`)
		m.Await(`{"type":"space.joined"}`)
		senders, members = append(senders, s), append(members, m)
	}
	forget(c)
	begin := time.Now()
	for i, s := range senders {
		untilStored(t, s, fmt.Sprint("member-", i), 1)
	}
	for i, m := range members {
		m.Await(fmt.Sprintf(`{"type":"message","from":"sender-%d","payload":1}`, i))
	}
	// Rosters, lists and new ids wait until everybody is there again, and are complete then.
	for ask, whole := range map[string]string{
		`{"type":"space.list","id":"l"}`: `{"id":"room","type":"public","member_count":6}`,
		`{"type":"list"}`:                `"id":"member-5"`,
	} {
		var answer agoratest.Frame
		senders[0].Until("it is answered", func() bool {
			senders[0].Send(ask)
			answer = senders[0].Take("an answer")
			over := answer.Text("code") != "UNAVAILABLE"
			if !over {
				<-time.After(again)
			}
			return over
		})
		if !strings.Contains(string(answer), whole) {
			t.Errorf("%s is answered %s", ask, answer)
		}
	}
	senders[0].Send(numbered("nobody", 1))
	senders[0].Expect(`{"type":"error","code":"AGENT_NOT_FOUND","to":"nobody"}`)
	if d := time.Since(begin); d < lease/2 {
		t.Errorf("whole again after %v: an edge that was slow could not have told what it holds", d)
	}
}

func TestANewIDWaitsWhileRedisGathersWhatItLost(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(watchful)}) // they look every second whether presence is whole
	old, welcome := registered(t, c, 0, "a")
	receiver, _ := registered(t, c, 2, "receiver")
	old.Send(`{"type":"send","to":"receiver","n":1,"stream_id":"s","stream":true}`)
	old.Expect(`{"type":"receipt","n":1}`)
	c.HoldPresence(0, true) // it tells later than others of what it holds
	forget(c)
	next := asked(t, c, 1, "a", token(welcome))
	next.ExpectNone(during(1500 * time.Millisecond))
	c.HoldPresence(0, false)
	next.Expect(`{"type":"agent.registered","resumed":true}`)
	next.Send(`{"type":"send_end","to":"receiver","n":2,"stream_id":"s"}`)
	receiver.Expect(`{"type":"message","stream_id":"s"}`, `{"type":"message_end","stream_id":"s"}`)
	old.AwaitClosed(4001)
}

func TestASenderInItsGraceIsRememberedWhenRedisLosesEverything(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]agoratest.Options{
		"and goes on":              {Leases: []time.Duration{watchful}},
		"and ends with that grace": {Node: edge.Config{Lease: retold, Search: time.Hour}, Grace: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && o.Grace > 0 {
				t.Skip("left to make test")
			}
			t.Parallel()
			c := start(t, o)
			receiver, _ := registered(t, c, 2, "receiver")
			sender, welcome := registered(t, c, 0, "sender")
			sender.Send(`{"type":"send","to":"receiver","n":1,"stream_id":"s","stream":true}`)
			sender.Expect(`{"type":"receipt","n":1}`)
			receiver.Expect(`{"type":"message","stream_id":"s"}`)
			sender.Drop()
			raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
			defer raw.Close()
			receiver.Until("the socket is known lost", func() bool {
				const record = "agora:1:{a:default.sender}:rec"
				return raw.HGet(t.Context(), record, "flushed").Val() != "" || raw.Exists(t.Context(), record).Val() == 0
			})
			forget(c)
			if o.Grace > 0 {
				receiver.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"sender","stream_id":"s"}`)
				return
			}
			sender, _ = registered(t, c, 1, "sender", token(welcome))
			sender.Send(`{"type":"send_end","to":"receiver","n":2,"stream_id":"s"}`)
			receiver.Expect(`{"type":"message_end","from":"sender"}`)
		})
	}
}

// Presence that has lost a claim learns of it again by what asks it as the claim's holder: refusing that would leave
// the agent behind as if its claim were another's, and the streams that it breaks then would never end for their
// receivers.
func TestAStreamBeginsAndOthersGoOnRightAfterRedisHasLostTheClaim(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2})
	sender, _ := registered(t, c, 0, "sender")
	receiver, _ := registered(t, c, 1, "receiver")
	sender.Send(`{"type":"send","to":"receiver","n":1,"stream_id":"s","stream":true}`)
	sender.Expect(`{"type":"receipt","n":1}`)
	flush(t, c)
	sender.Send(`{"type":"send","to":"receiver","n":2,"stream_id":"other","stream":true}`)
	sender.Expect(`{"type":"receipt","n":2}`)
	sender.Send(`{"type":"send_chunk","to":"receiver","n":3,"stream_id":"s","chunk":"c"}`)
	sender.Expect(`{"type":"receipt","n":3}`)
	receiver.Expect(`{"type":"message","stream_id":"s"}`, `{"type":"message","stream_id":"other"}`, `{"type":"message_chunk","stream_id":"s"}`)
}

// flush takes everything out of Redis, which continues.
func flush(t *testing.T, c *agoratest.Cluster) {
	t.Helper()
	r := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer r.Close()
	if err := r.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// An operator is to see that sessions which are over stay.
func TestAnEdgeTellsWhenItLastEndedWhatIsOver(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 1, Node: edge.Config{Lease: time.Second}})
	swept := func() time.Time { return c.Node(0).Stats().Swept }
	first := swept()
	await.True(t, "it sweeps", func() bool { return swept().After(first) })
	c.CutPresence(0)
	cut := time.Now()
	await.True(t, "its lease is over", func() bool { return c.Node(0).Stats().LeaseLeft < 0 })
	if last := swept(); last.After(cut.Add(time.Second)) {
		t.Errorf("without presence since %v it has swept at %v", cut, last)
	}
	c.MendEdge(0)
	mended := time.Now()
	await.True(t, "it sweeps again", func() bool { return swept().After(mended) })
}

// A Redis that moves is away for some seconds. Anyone who speaks with agents that the edge has found before does not
// notice, for as long as the edge has its lease.
func TestWhoWasKnownIsBelievedWhilePresenceIsAway(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := start(t, agoratest.Options{Edges: 2, Grace: time.Minute, Node: edge.Config{Lease: 8 * time.Second}})
	a, _ := registered(t, c, 0, "a")
	b, _ := registered(t, c, 1, "b")
	registered(t, c, 1, "new")
	stored(a, "b", 1)
	got(b, 1)
	c.CutPresence(0)
	n := 2
	for ; c.Node(0).Stats().LeaseLeft > time.Second; n++ { // "known" is not remembered for so long
		stored(a, "b", n)
		got(b, n)
	}
	a.Send(numbered("new", 1))
	if f := a.Await(`{"type":"error"}`); f.Text("code") != "UNAVAILABLE" {
		t.Errorf("a message to one whom nobody has asked for is answered by %s", f)
	}
	a.Until("the edge has no lease", func() bool { return c.Node(0).Stats().LeaseLeft < 0 })
	a.Send(numbered("b", n))
	if f := a.Await(`{"type":"error"}`); f.Text("code") != "UNAVAILABLE" {
		t.Errorf("a message without a lease is answered by %s", f)
	}
	c.MendEdge(0)
	untilStored(t, a, "b", n)
	got(b, n)
}
