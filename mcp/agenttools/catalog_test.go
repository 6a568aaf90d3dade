package agenttools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
)

// echo is an agent whose tools answer with their name and arguments.
func echo(t *testing.T, url, id string, tools ...agora.Skill) *client.Client {
	t.Helper()
	c := dial(t, url, id, tools...)
	answers(t, c, func(ctx context.Context, m *client.Message) {
		r := requestOf(m)
		if err := m.Reply(ctx, fmt.Sprintf("%s %s", r.Tool, r.Arguments)); err != nil && !errors.Is(err, context.Canceled) { // the test may end before the receipt
			t.Errorf("Reply = %v", err)
		}
	})
	return c
}

// listable waits until an agent stands in the directory with so many tools.
func listable(t *testing.T, c *client.Client, id string, tools int) {
	t.Helper()
	await.True(t, id+" in the directory", func() bool {
		all, err := c.Agents(await.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if string(a.ID) == id {
				card, err := c.AgentCard(await.Context(t), id)
				return err == nil && len(card.Tools) == tools
			}
		}
		return false
	})
}

func TestTheFirstListHasTheToolsOfTheAgentsThatThereAre(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	for _, generation := range []string{generation1, generation2} {
		t.Run(generation, func(t *testing.T) {
			t.Parallel()
			id := "bob " + generation
			echo(t, cluster.URL(0), id, agora.Skill{Name: "add", Description: "Adds.", Schema: json.RawMessage(`{"type":"object","required":["a"]}`)}, agora.Skill{Name: "now"})
			me := dial(t, cluster.URL(0), "me "+generation, agora.Skill{Name: "own"})
			listable(t, me, id, 2)
			h := start(t, me, Config{From: id + ", me " + generation, Refresh: time.Hour}, generation)
			add, now := toolName(id, "add"), toolName(id, "now")
			if got := h.names(); got != add+" "+now && got != now+" "+add {
				t.Fatalf("the host sees %s", got)
			}
			list, err := h.ListTools(await.Context(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list.Tools {
				schema, _ := json.Marshal(x.InputSchema) // it was decoded from JSON
				if x.Name == add && (string(schema) != `{"required":["a"],"type":"object"}` || !strings.HasPrefix(x.Description, "Adds.\n\nTool \"add\" of the agent \""+id)) {
					t.Errorf("the tool is %q with the schema %s", x.Description, schema)
				}
			}
			if got := h.call(add, json.RawMessage(`{"a":1.0}`)); got != `add {"a":1.0}` {
				t.Errorf("the call is answered with %s", got)
			}
			if got := h.call(now, nil); got != `now {}` {
				t.Errorf("the call is answered with %s", got)
			}
		})
	}
}

func TestToolsComeChangeAndGoWithTheirAgentsAndOnlyChangesAreAnnounced(t *testing.T) {
	t.Parallel()
	for _, generation := range []string{generation1, generation2} {
		t.Run(generation, func(t *testing.T) {
			t.Parallel()
			cluster := startCluster(t)
			me := dial(t, cluster.URL(0), "me")
			h := start(t, me, Config{Refresh: often}, generation)
			h.sees("")
			bob := echo(t, cluster.URL(0), "bob", agora.Skill{Name: "a"})
			h.sees("bob__a")
			h.announced(1)
			if err := bob.UpdateCard(await.Context(t), client.Card{Tools: []agora.Skill{{Name: "b"}, {Name: "a"}}}); err != nil {
				t.Fatal(err)
			}
			h.sees("bob__a bob__b")
			h.announced(2)
			bob.Close()
			h.sees("")
			h.announced(3)
		})
	}
}

// announced waits until so many changes were announced, and expects some refreshes to announce no more.
func (h *host) announced(n int64) {
	h.t.Helper()
	await.True(h.t, "announcements", func() bool { return h.changes.Load() >= n })
	h.refreshed(5)
	if h.names(); h.changes.Load() != n {
		h.t.Errorf("%d changes were announced, want %d", h.changes.Load(), n)
	}
}

// refreshed waits for so many refreshes.
func (h *host) refreshed(n uint64) {
	h.t.Helper()
	round := func() uint64 {
		h.catalog.refreshing.Lock()
		defer h.catalog.refreshing.Unlock()
		return h.catalog.round
	}
	end := round() + n
	await.True(h.t, "refreshes", func() bool { return round() >= end })
}

func TestAnAgentThatRegistersAnewBetweenTwoLooksIsNotAnnounced(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	me := dial(t, cluster.URL(0), "me")
	bob := dial(t, cluster.URL(0), "bob", agora.Skill{Name: "a"})
	listable(t, me, "bob", 1)
	h := prepare(t, me, Config{Refresh: often})
	h.connect(generation1)
	bob.Close()
	dial(t, cluster.URL(0), "bob", agora.Skill{Name: "a"})
	listable(t, me, "bob", 1)
	h.serve()
	h.announced(0)
	dial(t, cluster.URL(0), "carol", agora.Skill{Name: "c"})
	h.sees("bob__a carol__c")
	h.announced(1)
}

func TestOnlyAgentsOfThePatternAreOffered(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	me := dial(t, cluster.URL(0), "me")
	for _, id := range []string{"a-1", "a-2", "b-1", "c-1"} {
		dial(t, cluster.URL(0), id, agora.Skill{Name: "x"})
		listable(t, me, id, 1)
	}
	for pattern, want := range map[string]string{"a-*, c-?": "a-1__x a-2__x c-1__x", "[": "", "": "a-1__x a-2__x b-1__x c-1__x"} {
		h := prepare(t, me, Config{From: pattern})
		h.connect(generation1)
		if got := h.names(); got != want {
			t.Errorf("--from %q offers %s, want %s", pattern, got, want)
		}
		if err := CheckPattern(pattern); (err != nil) != (pattern == "[") {
			t.Errorf("CheckPattern(%q) = %v", pattern, err)
		}
	}
}

func TestToolsStayWhileTheDirectoryCantBeReachedAndCallsEnd(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	proxy := faultnet.NewProxy(t, strings.TrimSuffix(strings.TrimPrefix(cluster.URL(0), "ws://"), "/ws"))
	me := dial(t, "ws://"+proxy.Addr()+"/ws", "me")
	echo(t, cluster.URL(0), "bob", agora.Skill{Name: "a"})
	listable(t, me, "bob", 1)
	h := start(t, me, Config{Refresh: often, RefreshTimeout: 100 * time.Millisecond, CallTimeout: 100 * time.Millisecond}, generation2)
	h.sees("bob__a")
	proxy.Cut()
	failed := func() bool {
		h.catalog.refreshing.Lock()
		defer h.catalog.refreshing.Unlock()
		return h.catalog.failed
	}
	await.True(t, "a look that fails", failed)
	if got := h.names(); got != "bob__a" {
		t.Errorf("the host sees %q, want the tool of before", got)
	}
	if got := h.call("bob__a", nil); !strings.HasPrefix(got, `error | The tool "a" of the agent "bob" has not answered in time`) {
		t.Errorf("the call is answered with %s", got)
	}
	proxy.Mend()
	await.True(t, "a look that does not", func() bool { return !failed() })
	h.sees("bob__a")
}

func TestPrepareEndsWhereTheDirectoryCantBeReachedAndServeAddsTheTools(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	proxy := faultnet.NewProxy(t, strings.TrimSuffix(strings.TrimPrefix(cluster.URL(0), "ws://"), "/ws"))
	me := dial(t, "ws://"+proxy.Addr()+"/ws", "me")
	echo(t, cluster.URL(0), "bob", agora.Skill{Name: "a"})
	listable(t, me, "bob", 1)
	proxy.Cut()
	h := newHost(t, me, Config{Refresh: often, RefreshTimeout: time.Second})
	if err := h.catalog.Prepare(await.Context(t), h.server); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Prepare = %v, want that the time is over", err)
	}
	h.connect(generation1)
	h.sees("")
	proxy.Mend()
	h.serve()
	h.sees("bob__a")
	await.True(t, "the announcement", func() bool { return h.changes.Load() > 0 })
}
