package directory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

func TestADirectoryFollowsWhatIsToldOfAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.open(directory.Config{Compare: time.Hour}) // it compares itself once: all else it is told
	w.register(agora.Agent{ID: "a", Name: "one"}, true)
	if got := w.names(d); got != "a=one " {
		t.Fatalf("directory %q, want what was there before it was asked for", got)
	}
	w.register(agora.Agent{ID: "b", Name: "two"}, true)
	w.becomes(d, "a=one b=two ")
	w.register(agora.Agent{ID: "a", Name: "three"}, true)
	w.becomes(d, "a=three b=two ")
	w.remove("b", true)
	w.becomes(d, "a=three ")
	if _, err := d.Get(t.Context(), w.tenant, "b"); agora.AsError(err).Code != agora.AgentNotFound {
		t.Errorf("Get = %v, want AGENT_NOT_FOUND", err)
	}
}

func TestADirectoryThatIsToldNothingIsRightAtTheNextComparison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := directory.Config{Compare: time.Millisecond}
	directory.Deaf(&c)
	d := w.open(c)
	w.becomes(d, "")
	w.register(agora.Agent{ID: "a", Name: "one"}, false)
	w.register(agora.Agent{ID: "b", Name: "two"}, false)
	w.becomes(d, "a=one b=two ")
	w.register(agora.Agent{ID: "b", Name: "three"}, false)
	w.remove("a", false)
	w.becomes(d, "b=three ")
}

func TestWhatAnEdgeHasChangedItselfShowsThereAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.open(directory.Config{Compare: time.Hour})
	for i := range 50 {
		name := fmt.Sprint(i)
		_ = w.names(d)
		w.register(agora.Agent{ID: "a", Name: name}, false)
		d.Touch(w.tenant, "a")
		if got := w.names(d); got != "a="+name+" " {
			t.Fatalf("directory %q, want a=%s", got, name)
		}
	}
}

// Agents come and go at random, and change: each card says twice which it is, and counts up.
func TestADirectoryShowsNothingThatNeverWasSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := directory.Config{Compare: time.Millisecond}
	d, deaf := w.open(c), c
	directory.Deaf(&deaf)
	both := []*directory.Directory{d, w.open(deaf)}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	var shown [2]map[agora.AgentID]string
	var mu sync.Mutex // guards shown
	for i, d := range both {
		shown[i] = map[agora.AgentID]string{}
		watch, err := d.Watch(t.Context(), w.tenant)
		w.must(err)
		defer watch.Close()
		watching.Go(func() {
			last := map[agora.AgentID]int{}
			for {
				changes, err := watch.Next(ctx)
				if err != nil {
					return
				}
				mu.Lock()
				for _, c := range changes {
					_, there := shown[i][c.Agent.ID]
					if there != (c.Kind != directory.Added) {
						t.Errorf("%s: change %d, but told to be there: %v", c.Agent.ID, c.Kind, there)
					}
					n := 0
					if _, err := fmt.Sscan(c.Agent.Name, &n); err != nil || c.Agent.Description != c.Agent.Name || len(c.Agent.Skills) != n%3 {
						t.Errorf("%+v never was so", c.Agent)
					}
					if n < last[c.Agent.ID] || n == last[c.Agent.ID] && c.Kind != directory.Removed {
						t.Errorf("%s: told of card %d after %d", c.Agent.ID, n, last[c.Agent.ID])
					}
					last[c.Agent.ID] = n
					if shown[i][c.Agent.ID] = c.Agent.Name; c.Kind == directory.Removed {
						delete(shown[i], c.Agent.ID)
					}
				}
				mu.Unlock()
			}
		})
	}
	there := map[agora.AgentID]string{}
	for n := 1; n <= 300; n++ {
		id := agora.AgentID(fmt.Sprint("agent ", rand.IntN(5)))
		if there[id] != "" && rand.IntN(3) == 0 {
			w.remove(id, rand.IntN(2) == 0)
			delete(there, id)
			continue
		}
		name := fmt.Sprint(n)
		a := agora.Agent{ID: id, Name: name, Description: name}
		for k := range n % 3 {
			a.Skills = append(a.Skills, agora.Skill{Name: fmt.Sprint(k)})
		}
		w.register(a, rand.IntN(2) == 0)
		there[id] = name
	}
	want := fmt.Sprint(there)
	await.True(t, "both watches show "+want, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprint(shown[0]) == want && fmt.Sprint(shown[1]) == want
	})
	stop()
	watching.Wait()
}

func TestADirectoryIsDroppedWhenNobodyAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.open(directory.Config{Compare: time.Millisecond, Unused: time.Millisecond})
	if s := d.Stats(); s.Tenants != 0 {
		t.Fatalf("%+v before anybody has asked", s)
	}
	w.register(agora.Agent{ID: "a", Name: "one"}, true)
	watch, err := d.Watch(t.Context(), w.tenant)
	w.must(err)
	for range 20 { // it is there as long as somebody watches
		w.register(agora.Agent{ID: "a", Name: fmt.Sprint(rand.Int64())}, true)
		changes, err := watch.Next(t.Context())
		if err != nil || len(changes) != 1 {
			t.Fatalf("Next = %v, %v", changes, err)
		}
	}
	watch.Close()
	await.True(t, "the replica is dropped", func() bool { return d.Stats().Tenants == 0 })
	if _, err := watch.Next(t.Context()); err == nil {
		t.Error("a closed watch tells of something")
	}
	if a, err := d.Get(t.Context(), w.tenant, "a"); err != nil || a.Status != agora.Online {
		t.Errorf("Get = %+v, %v, want it loaded again", a, err)
	}
}

func TestADirectoryIsUnavailableWhilePresenceCantTell(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	w := worldAt(t, "redis://"+r.Addr())
	d := w.open(directory.Config{Compare: time.Millisecond})
	w.register(agora.Agent{ID: "a", Name: "one"}, true)
	w.becomes(d, "a=one ")
	r.Stop()
	unavailable := func() bool {
		_, err := d.All(t.Context(), w.tenant)
		return err != nil && agora.AsError(err).Code == agora.Unavailable
	}
	await.True(t, "the directory is unavailable", unavailable)
	r.Start()
	for range 20 { // the server has lost all: nobody knows who is there
		d.Doubt()
		if !unavailable() {
			t.Fatalf("directory %q of a server that has lost all", w.names(d))
		}
	}
	w.registerAgain(agora.Agent{ID: "b", Name: "two"})
	w.must(w.store.SetWhole(t.Context()))
	w.becomes(d, "b=two ")
}

func TestADirectoryThatIsClosedLetsEverybodyGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.open(directory.Config{})
	watch, err := d.Watch(t.Context(), w.tenant)
	w.must(err)
	d.Close()
	if _, err := watch.Next(t.Context()); err == nil {
		t.Error("a watch goes on")
	}
	if _, err := d.All(t.Context(), w.tenant); agora.AsError(err).Code != agora.Unavailable {
		t.Errorf("All = %v, want UNAVAILABLE", err)
	}
}

func TestADirectoryIsGivenInPagesAndByWhatIsWanted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.open(directory.Config{})
	for i := range 10 {
		a := agora.Agent{ID: agora.AgentID(fmt.Sprint(i)), Domain: fmt.Sprint("d", i%2)}
		switch i % 3 {
		case 1:
			a.Skills = []agora.Skill{{Name: "Translate"}}
		case 2:
			a.Tools, a.Dialect = []agora.Skill{{Name: "grep"}}, "iat"
		}
		w.register(a, false)
	}
	for want, f := range map[string]directory.Filter{
		"[0 1 2 3 4 5 6 7 8 9]": {},
		"[3 4 5 6 7 8 9]":       {After: "2"},
		"[9]":                   {After: "8"},
		"[8 9]":                 {From: "8"},
		"[1 4 7]":               {Skill: "Translate"},
		"[]":                    {Skill: "translate"},
		"[2 5 8]":               {Skill: "grep"},
		"[2 8]":                 {Dialect: "iat", Domain: "d0"},
		"[0 4 6]":               {Dialect: "agora", Domain: "d0"},
	} {
		all, err := d.Select(t.Context(), w.tenant, f)
		w.must(err)
		ids := []agora.AgentID{}
		for a := range all {
			ids = append(ids, a.ID)
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("Select(%+v) = %s, want %s", f, got, want)
		}
	}
}
