package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
)

// smallShard is the limit of a shard that one sender can fill.
const smallShard = 8 << 20

// fillShard has a principal store in boxes that make names, from edge after edge, until it is refused, and returns how many bytes were stored.
func fillShard(t *testing.T, edges []*Broker, tenant, principal string, box func(n int) agora.Address) (bytes int) {
	t.Helper()
	body := strings.Repeat("x", 20<<10)
	for n := 0; bytes < 2*smallShard; n++ {
		l := edges[n%len(edges)].Lane(LaneConfig{From: "mall", Session: fmt.Sprint(principal, n), Epoch: 1, To: box(n), Payer: principal})
		r := put(t, l, text(`"`+body+`"`))
		l.Close()
		if r.Err != nil {
			if e := agora.AsError(r.Err); e.Code != agora.Unavailable || e.RetryAfter == 0 || !strings.Contains(e.Message, "has stored as much of it as it may") {
				t.Fatalf("%s is refused after %d bytes with %v", principal, bytes, r.Err)
			}
			return bytes
		}
		bytes += len(body)
	}
	t.Fatalf("%s has stored %d bytes in a shard of %d", principal, bytes, smallShard)
	return 0
}

// boxesOf are addresses of each kind, each of which is another one.
var boxesOf = map[string]func(tenant string) func(n int) agora.Address{
	jslog.AgentKind: func(tenant string) func(int) agora.Address {
		return func(n int) agora.Address { return agora.ToAgent(tenant, agora.AgentID(fmt.Sprint("a", n))) }
	},
	jslog.SpaceKind: func(tenant string) func(int) agora.Address {
		return func(n int) agora.Address { return agora.ToSpace(tenant, fmt.Sprint("s", n)) }
	},
	jslog.CallKind: func(tenant string) func(int) agora.Address {
		return func(n int) agora.Address { return agora.ToBox(tenant, fmt.Sprint("c", n), "a") }
	},
}

func smallShards(c *Config) { c.ShardBytes, c.Probe = smallShard, 50*time.Millisecond }

// TestWhoeverFillsAShardLeavesRoomForOthers floods the shards of each kind from two edges, by a principal and by a tenant of many principals: then others store in them.
func TestWhoeverFillsAShardLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	for kind, boxes := range boxesOf {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := testServer(t, 1)
			edges := []*Broker{testBroker(t, s, smallShards), testBroker(t, s, smallShards)}
			for _, b := range edges {
				b.SetEdges(2)
			}
			first := fillShard(t, edges, "t", "mall", boxes("t"))
			if first < smallShard/4 || first > smallShard*7/8 {
				t.Errorf("one principal has stored %d bytes of %d", first, smallShard)
			}
			for k, who := range []struct{ tenant, principal string }{{"t", "joe"}, {"acme", "zed"}} {
				for n := range 10 {
					l := edges[k].Lane(LaneConfig{From: "x", Session: fmt.Sprint(who.principal, n), Epoch: 1, To: boxes(who.tenant)(n), Payer: who.principal})
					store(t, l, text(`"`+strings.Repeat("y", 10<<10)+`"`))
					l.Close()
				}
			}
			for k := range 12 {
				fillShard(t, edges, "t", fmt.Sprint("mall", k), boxes("t"))
			}
			l := edges[0].Lane(LaneConfig{From: "x", Session: "last", Epoch: 1, To: boxes("acme")(0), Payer: "yan"})
			defer l.Close()
			store(t, l, text(`"hello"`))
		})
	}
}

func TestWhatTheLogHasNoMoreDoesNotCount(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, smallShards)
	boxes := boxesOf[jslog.AgentKind]("t")
	fillShard(t, []*Broker{b}, "t", "mall", boxes)
	l := b.Lane(LaneConfig{From: "mall", Session: "again", Epoch: 1, To: boxes(0), Payer: "mall"})
	defer l.Close()
	for n := range 400 {
		if err := b.Forget(await.Context(t), boxes(n), 0); err != nil {
			t.Fatal(err)
		}
	}
	await.True(t, "the log is asked what there is yet", func() bool { return put(t, l, text(`"x"`)).Err == nil })
}

// A mailbox keeps so many records and no more: who writes much to one fills no shard.
func TestWhoReplacesWhatItHasStoredGoesOn(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	b := testBroker(t, s, func(c *Config) { smallShards(c); c.MaxRecords = 16 })
	boxes := boxesOf[jslog.AgentKind]
	fillShard(t, []*Broker{b}, "acme", "mall", boxes("acme"))
	l := b.Lane(LaneConfig{From: "x", Session: "s", Epoch: 1, To: boxes("t")(0), Payer: "joe"})
	defer l.Close()
	body := text(`"` + strings.Repeat("x", 20<<10) + `"`)
	for range 2 * smallShard / len(body.Body) { // far more than its share, or than there is
		await.True(t, "it is stored in place of an older one", func() bool { return put(t, l, body).Err == nil })
	}
}
