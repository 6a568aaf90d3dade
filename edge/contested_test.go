package edge_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// Presence has lost an agent's session, and another one was given its address before its edge could say so: that one
// keeps it, and the first one's session ends.
func TestOfTwoAgentsAtOneAddressTheOneThatPresenceLostEnds(t *testing.T) {
	t.Parallel()
	c := dialling(t, agoratest.Options{Edges: 2, Node: edge.Config{Lease: watchful}})
	n, other := agoratest.StartLineNode(t), agoratest.StartLineNode(t)
	dialled(t, c, 0, "a", n)
	dialled(t, c, 1, "b", other)
	raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
	defer raw.Close()
	// As if b had been dialled where a is.
	const addresses, lost, given = "agora:1:{addresses:default}", "agora:1:{a:default.a}:rec", "agora:1:{a:default.b}:rec"
	entry, _, _ := strings.Cut(raw.HGet(t.Context(), given, "dial").Val(), " ")
	p := raw.TxPipeline()
	p.HSet(t.Context(), addresses, n.Address(), "default.b "+entry+" 1")
	p.HSet(t.Context(), given, "dial", entry+" "+n.Address())
	gone := p.Del(t.Context(), lost)
	if _, err := p.Exec(t.Context()); err != nil || entry == "" || gone.Val() != 1 {
		t.Fatalf("%v; entry %q, %d records gone", err, entry, gone.Val())
	}
	await.True(t, "its connection is closed", func() bool { return n.Connections() == 0 })
	await.True(t, "its session is over", func() bool { return holder(t, c, 1, "a").State == "away" })
	mailed(t, c, 0, "b", 1)
	other.Await("sender 1")
	if err := c.Lines(0).Register(t.Context(), actor(t, c, 0), "a", n.Address()); code(err) != "AGENT_EXISTS" {
		t.Errorf("it has the address again: %v", err)
	}
}
