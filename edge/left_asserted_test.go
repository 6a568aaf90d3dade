package edge_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// meanwhile does something once, before a pipeline is sent of which a command names all of some texts.
type meanwhile struct {
	texts []string
	do    atomic.Pointer[func()]
}

func (m *meanwhile) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (m *meanwhile) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (m *meanwhile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if said := cmd.String(); m.names(said) {
				if do := m.do.Swap(nil); do != nil {
					(*do)()
				}
			}
		}
		return next(ctx, cmds)
	}
}

func (m *meanwhile) names(said string) bool {
	for _, text := range m.texts {
		if !strings.Contains(said, text) {
			return false
		}
	}
	return true
}

// A join takes until its roster is told. Where presence loses everything meanwhile, and is told again of the sessions, the membership is not one that they have yet.
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
	a.Await(`{"type":"space.joined"}`)
	if !raw.HExists(t.Context(), member, "a").Val() {
		t.Error("it is told that it has joined, and is no member")
	}
}

// An agent that was told that its leave may have failed, as it had and as nobody could be told, is a member again when it joins.
func TestAnAgentThatLeftUnheardIsAMemberWhenItJoinsAgain(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	stays, _ := registered(t, c, 1, "stays")
	a, _ := registered(t, c, 0, "a")
	for _, x := range []*agoratest.Client{stays, a} {
		x.Send(`{"type":"space.join","id":"j","space":"room"}`)
		x.Await(`{"type":"space.joined"}`)
	}
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

// An edge looks at what its agents are in, and writes it to presence again. An agent that leaves a space in between must not be a member of it ever after.
func TestAnAgentThatLeavesWhileItsMembershipIsWrittenAgainHasLeft(t *testing.T) {
	t.Parallel()
	// Keys of the script that writes a session again, and of no other: its record, what it has cancelled, its lanes.
	hook := &meanwhile{texts: []string{"{a:default.leaves}:rec", "{a:default.leaves}:cancelled", "{a:default.leaves}:lanes"}}
	c := start(t, agoratest.Options{Hook: hook})
	stays, _ := registered(t, c, 1, "stays")
	leaves, _ := registered(t, c, 0, "leaves")
	for _, a := range []*agoratest.Client{stays, leaves} {
		a.Send(`{"type":"space.join","id":"j","space":"room"}`)
		a.Await(`{"type":"space.joined"}`)
	}
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	left := make(chan struct{})
	leave := func() {
		defer close(left)
		leaves.Send(`{"type":"space.leave","id":"l","space":"room"}`)
		leaves.Await(`{"type":"space.left"}`)
	}
	hook.do.Store(&leave)
	c.CutLog(0) // when it is back, what the edge holds is written again
	c.MendEdge(0)
	await.Recv(t, "the agent leaves while its session is written", left)
	leaves.Until("it is no member any more", func() bool {
		return !raw.HExists(t.Context(), "agora:1:{s:default.room}:members", "leaves").Val() && raw.HLen(t.Context(), "agora:1:{a:default.leaves}:spaces").Val() == 0
	})
	stays.Await(`{"type":"space.members","left":"leaves"}`)
}
