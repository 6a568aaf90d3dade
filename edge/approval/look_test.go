package approval

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

func TestApprovalsAreListedFoundAndPendingAtEveryEdge(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	if a.IsPending(tenant, "sub", "host", "1") || a.Pending(tenant, "host") != nil {
		t.Error("something is pending")
	}
	for k := range 5 {
		ask(t, a, request(tenant, fmt.Sprint(k)))
	}
	other := request(tenant, "1")
	other.Agent, other.To = "sub-2", agora.Cluster
	ask(t, b, other)
	if _, err := decide(t, b, tenant, "0", false, "joe"); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]*Approvals{"a": a, "b": b, "a new edge": edge(t, shared[0], nil)} {
		await.True(t, "all is known at "+name, func() bool {
			all, _ := e.List(tenant, Filter{State: Pending})
			denied, _ := e.List(tenant, Filter{State: Denied})
			return len(all) == 5 && len(denied) == 1
		})
		all, more := e.List(tenant, Filter{Most: 3})
		if !more || len(all) != 3 || all[0].ID != "0" || all[1].ID != "1" || all[2].ID != "2" {
			t.Errorf("%s: List = %+v, %v", name, all, more)
		}
		if rest, more := e.List(tenant, Filter{After: all[2].Seq}); more || len(rest) != 3 || rest[0].ID != "3" || rest[2].Agent != "sub-2" {
			t.Errorf("%s: behind these List = %+v, %v", name, rest, more)
		}
		if all, more := e.List(tenant, Filter{To: agora.Cluster}); more || len(all) != 1 || all[0].Agent != "sub-2" {
			t.Errorf("%s: List = %+v, %v", name, all, more)
		}
		if all, _ := e.List(tenant, Filter{Agent: "sub-2", To: "host"}); len(all) != 0 {
			t.Errorf("%s: List = %+v", name, all)
		}
		if !e.IsPending(tenant, "sub", "host", "1") || e.IsPending(tenant, "sub", "host", "0") || e.IsPending(tenant, "sub", "joe", "1") || e.IsPending("x", "sub", "host", "1") {
			t.Errorf("%s: what is pending is not", name)
		}
		if n := len(e.Pending(tenant, "host")); n != 4 {
			t.Errorf("%s: %d pending, want 4", name, n)
		}
	}
	if d, err := b.Find(await.Context(t), tenant, "2"); err != nil || d.ID != "2" {
		t.Errorf("Find = %+v, %v", d, err)
	}
	_, err := b.Find(await.Context(t), tenant, "1")
	wantCode(t, "Find of an id of two", err, agora.InvalidRequest)
	_, err = b.Find(await.Context(t), tenant, "7")
	wantCode(t, "Find of nothing", err, agora.NotFound)
	_, err = b.Find(await.Context(t), "acme", "2")
	wantCode(t, "Find in another tenant", err, agora.NotFound)
	_, err = b.Get(await.Context(t), tenant, "sub", strings.Repeat("7", 1000))
	wantCode(t, "Get of nothing", err, agora.NotFound)
	if len(err.Error()) > 200 {
		t.Errorf("%v is long", err)
	}
	_, err = b.Await(await.Context(t), tenant, "sub", "7")
	wantCode(t, "Await of nothing", err, agora.NotFound)
	_, err = decide(t, b, tenant, "7", true, "joe")
	wantCode(t, "Decide of nothing", err, agora.NotFound)
}

func TestWhatWasJustAskedElsewhereIsFound(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	for k := range 50 {
		id := fmt.Sprint(k)
		ask(t, a, request(tenant, id))
		if d, err := b.Find(await.Context(t), tenant, id); err != nil || d.ID != id {
			t.Fatalf("Find = %+v, %v", d, err)
		}
	}
}

func TestAListHasWhatWasJustAskedElsewhere(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	for k := range 50 {
		ask(t, a, request(tenant, fmt.Sprint(k)))
		if err := b.CatchUp(await.Context(t)); err != nil {
			t.Fatal(err)
		}
		if all, _ := b.List(tenant, Filter{}); len(all) != k+1 {
			t.Fatalf("%d listed, want %d", len(all), k+1)
		}
	}
}

func TestAWatchTellsOfEachChange(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	w, other := b.Watch(tenant, Filter{Agent: "sub"}), b.Watch(tenant, Filter{Agent: "other"})
	defer other.Close()
	next := func(want State) {
		t.Helper()
		d, anew, err := w.Next(await.Context(t))
		if err != nil || anew || len(d) != 1 || d[0].State != want {
			t.Errorf("Next = %+v, %v, %v, want one that is %s", d, anew, err, want)
		}
	}
	ask(t, a, request(tenant, "1"))
	next(Pending)
	if _, err := decide(t, a, tenant, "1", true, "host"); err != nil {
		t.Fatal(err)
	}
	next(Approved)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := other.Next(ctx)
	wantCode(t, "a watch to which nothing happens", err, agora.Unavailable)
	w.Close()
	w.Close()
	_, _, err = w.Next(t.Context())
	wantCode(t, "a closed watch", err, agora.Unavailable)
	b.Close()
	_, _, err = other.Next(t.Context())
	wantCode(t, "a watch of an edge that has closed", err, agora.Unavailable)
}

func TestASlowWatchIsToldToListAnew(t *testing.T) {
	t.Parallel()
	a, _, tenant := pair(t, nil)
	w := a.Watch(tenant, Filter{})
	defer w.Close()
	a.replica.mu.Lock()
	for k := range mostWaiting + 1 {
		q := request(tenant, fmt.Sprint(k))
		a.replica.watches.changed(&entry{Approval: &q})
	}
	queued := len(w.queue) + len(w.queued)
	a.replica.mu.Unlock()
	if queued != 0 {
		t.Errorf("%d wait though all is to be listed anew", queued)
	}
	if d, anew, err := w.Next(t.Context()); err != nil || !anew || len(d) != 0 {
		t.Errorf("Next = %+v, %v, %v", d, anew, err)
	}
	ask(t, a, request(tenant, "x"))
	if d, anew, err := w.Next(await.Context(t)); err != nil || anew || len(d) != 1 {
		t.Errorf("Next = %+v, %v, %v", d, anew, err)
	}
}

func TestEveryoneWhoWaitsIsLetGoWhenTheEdgeCloses(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	ask(t, a, request(tenant, "1"))
	over := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := b.Await(await.Context(t), tenant, "sub", "1")
		over <- err
	})
	await.True(t, "it waits", func() bool {
		b.replica.mu.RLock()
		defer b.replica.mu.RUnlock()
		n := b.replica.tenants.find(tenant, Box(tenant, "sub", "1"))
		return n != nil && n.changed != nil
	})
	b.Close()
	wantCode(t, "Await", await.Recv(t, "an end", over), agora.Unavailable)
	wg.Wait()
}

func TestNothingPendingCostsNothing(t *testing.T) {
	a := &Approvals{replica: new(replica)}
	if n := testing.AllocsPerRun(100, func() {
		if a.IsPending("default", "sub", "host", "1") || a.Pending("default", "host") != nil {
			t.Error("something is pending")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
