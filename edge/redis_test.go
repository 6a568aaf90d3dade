package edge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/internal/agoratest"
)

// forget restarts Redis without its data.
func forget(c *agoratest.Cluster) {
	c.Redis.Stop()
	c.Redis.Start()
}

// untilStored sends a numbered message as often as it is refused for the moment, and returns how often it was.
func untilStored(t *testing.T, from *agoratest.Client, to string, n int) (refused int) {
	t.Helper()
	for {
		from.Send(numbered(to, n))
		f := from.Take("a receipt")
		switch {
		case f.Match(fmt.Sprintf(`{"type":"receipt","n":%d}`, n)) == "":
			return refused
		case f.Text("code") != "UNAVAILABLE":
			t.Fatalf("message %d to %s: %s, want UNAVAILABLE or a receipt", n, to, f)
		}
		refused++
	}
}

func TestNobodyIsToldUnknownWronglyWhenRedisComesBackEmpty(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
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
	refused := 0
	for i, s := range senders {
		refused += untilStored(t, s, fmt.Sprint("member-", i), 1)
	}
	t.Logf("all reach each other %v after the loss, %d refusals", time.Since(begin).Round(time.Millisecond), refused)
	for i, m := range members {
		m.Await(fmt.Sprintf(`{"type":"message","from":"sender-%d","payload":1}`, i))
	}
	// Rosters, lists and new ids wait until everybody is there again, and are complete then.
	for ask, whole := range map[string]string{
		`{"type":"space.list","id":"l"}`: `{"id":"room","type":"public","member_count":6}`,
		`{"type":"list"}`:                `"id":"member-5"`,
	} {
		answer := agoratest.Frame(`{"code":"UNAVAILABLE"}`)
		for answer.Text("code") == "UNAVAILABLE" {
			senders[0].Send(ask)
			answer = senders[0].Take("an answer")
		}
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
	c := start(t, agoratest.Options{Node: leased(2 * time.Second)})
	old, welcome := registered(t, c, 0, "a")
	receiver, _ := registered(t, c, 2, "receiver")
	old.Send(`{"type":"send","to":"receiver","n":1,"stream_id":"s","stream":true}`)
	old.Expect(`{"type":"receipt","n":1}`)
	c.HoldPresence(0, true) // it tells later than others of what it holds
	forget(c)
	next := asked(t, c, 1, "a", token(welcome))
	next.ExpectNone(during(500 * time.Millisecond))
	c.HoldPresence(0, false)
	next.Expect(`{"type":"agent.registered","resumed":true}`)
	next.Send(`{"type":"send_end","to":"receiver","n":2,"stream_id":"s"}`)
	receiver.Expect(`{"type":"message","stream_id":"s"}`, `{"type":"message_end","stream_id":"s"}`)
	old.AwaitClosed(4001)
}

func TestASenderInItsGraceIsRememberedWhenRedisLosesEverything(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{Node: leased(3 * time.Second), Grace: 6 * time.Second})
	receiver, _ := registered(t, c, 2, "receiver")
	back, welcome := registered(t, c, 0, "back")
	gone, _ := registered(t, c, 0, "gone")
	for _, a := range []*agoratest.Client{back, gone} {
		a.Send(`{"type":"send","to":"receiver","n":1,"stream_id":"s","stream":true}`)
		a.Expect(`{"type":"receipt","n":1}`)
		receiver.Expect(`{"type":"message","stream_id":"s"}`)
	}
	back.Drop()
	gone.Drop()
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	receiver.Until("the sockets are known lost", func() bool {
		a := raw.HGet(t.Context(), "agora:1:{a:default.back}:rec", "flushed")
		b := raw.HGet(t.Context(), "agora:1:{a:default.gone}:rec", "flushed")
		return a.Val() != "" && b.Val() != ""
	})
	forget(c)
	back, _ = registered(t, c, 1, "back", token(welcome))
	back.Send(`{"type":"send_end","to":"receiver","n":2,"stream_id":"s"}`)
	receiver.Expect(`{"type":"message_end","from":"back"}`)
	receiver.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"gone","stream_id":"s"}`)
}

// Presence that has lost a claim is told of it again by what asks it as the claim's holder: refusing that would leave the agent
// behind as if its claim were another's, and the streams that it breaks then would never end for their receivers.
func TestAStreamBeginsAndOthersGoOnRightAfterRedisHasLostTheClaim(t *testing.T) {
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

// flush takes everything out of Redis, which goes on.
func flush(t *testing.T, c *agoratest.Cluster) {
	t.Helper()
	r := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer r.Close()
	if err := r.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}
