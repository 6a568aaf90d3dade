package edge_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// meanwhile does something once, before a command is sent that names all of some texts, alone or in a pipeline; or once
// it is answered.
type meanwhile struct {
	texts    []string
	answered bool
	do       atomic.Pointer[func()]
}

func (m *meanwhile) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *meanwhile) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return m.around([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (m *meanwhile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return m.around(cmds, func() error { return next(ctx, cmds) })
	}
}

func (m *meanwhile) around(cmds []redis.Cmder, send func() error) (err error) {
	named := slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return m.names(cmd.String()) })
	if m.answered {
		err = send()
	}
	if named && err == nil {
		if do := m.do.Swap(nil); do != nil {
			(*do)()
		}
	}
	if !m.answered {
		err = send()
	}
	return err
}

func (m *meanwhile) names(said string) bool {
	for _, text := range m.texts {
		if !strings.Contains(said, text) {
			return false
		}
	}
	return true
}

// An edge looks at what its agents are in, and writes it to presence again. An agent that leaves a space in between
// must not be a member of it ever after.
func TestAnAgentThatLeavesWhileItsMembershipIsWrittenAgainHasLeft(t *testing.T) {
	t.Parallel()
	// Keys of the script that writes a session again, and of no other: its record, what it has cancelled, its lanes.
	hook := &meanwhile{texts: []string{"{a:default.leaves}:rec", "{a:default.leaves}:cancelled", "{a:default.leaves}:lanes"}}
	c := start(t, agoratest.Options{Hook: hook})
	stays, _ := registered(t, c, 1, "stays")
	leaves, _ := registered(t, c, 0, "leaves")
	joinsRoom(stays, leaves)
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
