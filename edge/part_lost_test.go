package edge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// A server may lose a part of what it had, and not the mark that says that it is whole: a copy that is older takes its
// place, or it reads its file again and leaves some out. What edges hold of the others is told again, too, that no
// session of theirs shows to be lost.
func TestWhatPresenceHasLostInPartIsToldAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *agoratest.Cluster, *redis.Client){
		"every record": func(t *testing.T, _ *agoratest.Cluster, raw *redis.Client) {
			forgetAgents(t, raw, "")
		},
		// Nothing that an edge asks for once in a lease is missing, but the server has an older renewal of each lease
		// than it had.
		"what no session stands for, in an older copy": func(t *testing.T, c *agoratest.Cluster, raw *redis.Client) {
			var beats []string
			for _, k := range c.Edges() {
				beats = append(beats, raw.Get(t.Context(), beatOf(k)).Val())
			}
			for _, k := range c.Edges() {
				renewedTimes(t, c, k, 3)
			}
			forgetAgents(t, raw, "stays")
			for _, k := range c.Edges() {
				if err := raw.Set(t.Context(), beatOf(k), beats[k], retold).Err(); err != nil || beats[k] == "" {
					t.Fatalf("beat %q: %v", beats[k], err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, agoratest.Options{Grace: time.Minute, Node: edge.Config{Lease: retold, Search: time.Second}})
			raw := redis.NewClient(&redis.Options{Addr: c.Redis.Addr()})
			defer raw.Close()
			if _, err := actor(t, c, 2).Register(t.Context(), cardOf("registered"), time.Hour); err != nil {
				t.Fatal(err)
			}
			stays, _ := registered(t, c, 0, "stays")
			back, welcome := registered(t, c, 1, "back")
			back.Drop()
			stays.Until("its socket is known lost", func() bool {
				return raw.HGet(t.Context(), "agora:1:{a:default.back}:rec", "flushed").Val() != ""
			})
			for _, k := range c.Edges() { // with the second renewal an edge tells all that it holds
				renewedTimes(t, c, k, 2)
			}
			if mark(t, raw) == "" {
				t.Fatal("presence is not whole")
			}
			lose(t, c, raw)
			for _, id := range []string{"stays", "registered", "back"} {
				stays.Until(id+" is known again", func() bool {
					return raw.Exists(t.Context(), "agora:1:{a:default."+id+"}:rec").Val() == 1
				})
			}
			if _, again := registered(t, c, 2, "back", token(welcome)); again.Raw("resumed") != "true" {
				t.Errorf("welcomed by %s", again)
			}
			stays.Until("presence is whole", func() bool { return mark(t, raw) != "" })
		})
	}
}

// beatOf is the key of the last renewal of an edge's lease.
func beatOf(k int) string { return fmt.Sprintf("agora:1:{e:edge-%d}:beat", k) }

// renewedTimes waits until an edge has renewed its lease some times more.
func renewedTimes(t *testing.T, c *agoratest.Cluster, k int, times uint64) {
	t.Helper()
	renewed := func() uint64 { return c.Node(k).Stats().Renewals.Read().Count }
	from := renewed()
	await.True(t, "an edge renews its lease", func() bool { return renewed() >= from+times })
}

// forgetAgents has presence lose the records of all agents but one, and nothing else.
func forgetAgents(t *testing.T, raw *redis.Client, but string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	keys, err := raw.Keys(ctx, "agora:1:{a:*").Result()
	for _, k := range keys {
		if but == "" || !strings.Contains(k, "."+but+"}") {
			err = raw.Del(ctx, k).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
