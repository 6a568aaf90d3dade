package edge_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/internal/agoratest"
)

// An agent's edge died after it had taken the agent out of a space, and before it told anybody. The edge at which the
// agent continues does.
func TestALeaveThatAnEdgeDiedOverIsToldWhereTheAgentGoesOn(t *testing.T) {
	t.Parallel()
	c := start(t, agoratest.Options{})
	stays, _ := registered(t, c, 1, "stays")
	leaves, welcome := registered(t, c, 0, "leaves")
	joinsRoom(stays, leaves)
	stays.Await(`{"type":"space.members","joined":"leaves"}`)
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	leaves.Drop()
	leaves.Until("its socket is known lost", func() bool {
		return raw.HGet(t.Context(), "agora:1:{a:default.leaves}:rec", "flushed").Val() != ""
	})
	if n, err := raw.HSet(t.Context(), "agora:1:{a:default.leaves}:spaces", "room", "-").Result(); n != 0 || err != nil {
		t.Fatalf("marked as leaving: %d new, %v; want it there before", n, err)
	}
	leaves, _ = registered(t, c, 1, "leaves", token(welcome))
	stays.Expect(`{"type":"space.members","left":"leaves"}`)
	leaves.Until("nothing is owed any more", func() bool {
		return raw.HLen(t.Context(), "agora:1:{a:default.leaves}:spaces").Val() == 0
	})
	leaves.Send(`{"type":"space.join","id":"j","space":"room"}`)
	leaves.Await(`{"type":"space.joined"}`)
	stays.Expect(`{"type":"space.members","joined":"leaves"}`)
	stays.ExpectNone(during(100 * time.Millisecond))
}
