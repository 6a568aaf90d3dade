//go:build !race

package presence_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/presence"
)

// An edge looks after every claim once in a lease. What garbage that leaves is there until the runtime collects, which
// on an edge whose agents are silent is seldom: of fifteen thousand claims, a kilobyte each were as much as what is
// kept of them.
func TestLookingAfterClaimsLeavesLittleGarbage(t *testing.T) {
	const most, rounds = 150, 20
	c, err := presence.Dial("redis://" + servers.Redis(t).Addr())
	ok(t, err)
	s := presence.New(presence.Config{Client: c})
	defer s.Close()
	ok(t, s.SetWhole(t.Context()))
	claims, h := manyClaims(t, s, 1000)
	look := func() {
		if missing := must(s.Sessions.Missing(t.Context(), h, slices.Values(claims)))(t); len(missing) > 0 {
			t.Fatalf("%d missing", len(missing))
		}
	}
	look()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range rounds {
		look()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / rounds / uint64(len(claims)); each > most {
		t.Errorf("looking after a claim allocates %d bytes, want %d at most", each, most)
	}
}

// What the library would take for pipelines is a fiftieth of what fifteen thousand idle agents cost their edge.
func TestConnectionsToRedisHaveSmallBuffers(t *testing.T) {
	for _, url := range []string{"redis://127.0.0.1:1", "redis-sentinel://127.0.0.1:1?master_name=m", "redis-cluster://127.0.0.1:1"} {
		c := must(presence.Dial(url))(t)
		defer c.Close()
		var sizes []int
		switch c := c.(type) {
		case *redis.Client:
			o := c.Options()
			sizes = []int{o.ReadBufferSize, o.WriteBufferSize, o.PipelineReadBufferSize, o.PipelineWriteBufferSize}
		case *redis.ClusterClient:
			o := c.Options()
			sizes = []int{o.ReadBufferSize, o.WriteBufferSize, o.PipelineReadBufferSize, o.PipelineWriteBufferSize}
		}
		if len(sizes) != 4 || slices.Min(sizes) < 1<<10 || slices.Max(sizes) > 16<<10 {
			t.Errorf("%s: buffers of %v bytes", url, sizes)
		}
	}
}
