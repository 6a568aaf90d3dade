package edge_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// A server may lose a part of what it had, and not the mark that says that it is whole: a copy that is older takes its place, or it reads its
// file again and leaves some out. What edges hold of the others is told again, too, that no session of theirs shows to be lost.
func TestWhatPresenceHasLostInPartIsToldAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *agoratest.Cluster, *redis.Client){
		"every record": func(t *testing.T, _ *agoratest.Cluster, raw *redis.Client) {
			forgetAgents(t, raw, "")
		},
		// Nothing that an edge asks for once in a lease is missing.
		"what no session stands for, in a restart": func(t *testing.T, c *agoratest.Cluster, raw *redis.Client) {
			forgetAgents(t, raw, "stays")
			if err := raw.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
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
				renewed := func() uint64 { return c.Node(k).Stats().Renewals.Read().Count }
				stays.Until("an edge has its lease for a while", func() bool { return renewed() > 2 })
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
