package edge_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/presence"
)

// joinsRoom has agents join the space room, one after the other.
func joinsRoom(agents ...*agoratest.Client) {
	for _, a := range agents {
		a.Send(`{"type":"space.join","id":"j","space":"room"}`)
		a.Await(`{"type":"space.joined"}`)
	}
}

// A join takes until its roster is told. Where presence loses everything meanwhile, and is told again of the sessions,
// the membership is not one that they have yet: it is made again, or the agent is told to join again.
func TestAnAgentIsInASpaceThoughPresenceLostItWhileItJoined(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	a, _ := registered(t, c, 0, "a")
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	const member, record = "agora:1:{s:default.room}:members", "agora:1:{a:default.a}:rec"
	c.HoldLog(0, true)
	a.Send(`{"type":"space.join","id":"j","space":"room"}`)
	a.Until("it is a member", func() bool { return raw.HExists(t.Context(), member, "a").Val() })
	if err := raw.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	a.Until("its session is written again", func() bool { return raw.Exists(t.Context(), record).Val() > 0 })
	c.HoldLog(0, false)
	for f := a.Take("the answer to a join"); f.Type() != "space.joined"; f = a.Take("the answer to a join") {
		if f.Type() == "error" { // presence did not know the session yet
			if d := f.Match(`{"type":"error","code":"UNAVAILABLE","request_id":"j","space":"room"}`); d != "" {
				t.Fatalf("%s: %s", f, d)
			}
			a.Send(`{"type":"space.join","id":"j","space":"room"}`)
		}
	}
	if !raw.HExists(t.Context(), member, "a").Val() {
		t.Error("it is told that it has joined, and is no member")
	}
}

// An agent that was told that its leave may have failed, as it had and as nobody could be told, is a member again when
// it joins.
func TestAnAgentThatLeftUnheardIsAMemberWhenItJoinsAgain(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	stays, _ := registered(t, c, 1, "stays")
	a, _ := registered(t, c, 0, "a")
	joinsRoom(stays, a)
	p := c.Node(0).Config().Presence
	at, err := p.Operators.Inspect(t.Context(), agora.DefaultTenant, "a")
	if err == nil { // as its edge does, which hears no answer
		_, err = p.Spaces.Leave(t.Context(), presence.Claim{Tenant: agora.DefaultTenant, Agent: "a", Session: at.Session, Epoch: at.Epoch}, "room")
	}
	if err != nil {
		t.Fatal(err)
	}
	a.Send(`{"type":"space.join","id":"again","space":"room"}`)
	if f := a.Await(`{"type":"space.joined","id":"again"}`); !strings.Contains(f.Raw("members"), `"a"`) {
		t.Errorf("it joins again: %s", f)
	}
	stays.Await(`{"type":"space.members","left":"a"}`)
	stays.Await(`{"type":"space.members","joined":"a"}`)
	stays.Send(`{"type":"space.publish","space":"room","data":{"k":1}}`)
	a.Await(`{"type":"space.event","data":{"from":"stays","k":1,"timestamp":"<any>"}}`)
}
