package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// site is presence, and how to empty it.
type site struct {
	*presence.Store
	url string
}

func newSite(t *testing.T) *site {
	t.Helper()
	server, err := presence.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s := &site{url: "redis://" + server.Addr()}
	s.Store = s.store(t)
	return s
}

func (s *site) store(t *testing.T) *presence.Store {
	t.Helper()
	client, err := presence.Dial(s.url)
	if err != nil {
		t.Fatal(err)
	}
	store := presence.New(presence.Config{Client: client})
	t.Cleanup(func() { store.Close() })
	if err := store.SetWhole(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// empty has presence lose everything, and be taken for whole at once.
func (s *site) empty(t *testing.T) {
	t.Helper()
	client, err := presence.Dial(s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := errors.Join(client.FlushAll(t.Context()).Err(), s.SetWhole(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func task(request string) presence.Execute {
	return presence.Execute{Tenant: agora.DefaultTenant, Callee: "sub", Caller: "host", Request: request, Limited: true}
}

// holds compares the tasks that are open with those that are to be.
func (s *site) holds(t *testing.T, want ...string) {
	t.Helper()
	all, err := s.Executes.Of(t.Context(), agora.DefaultTenant, "sub")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range all {
		got = append(got, e.Request)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("open are %q, want %q", got, want)
	}
}

func none(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestTasksOutliveAPresenceThatComesBackEmpty(t *testing.T) {
	s, ctx := newSite(t), t.Context()
	a, b := NewLedger(s.Store, time.Now, nil), NewLedger(s.store(t), time.Now, nil)
	none(t, a.Open(ctx, task("1")), a.Open(ctx, task("2")), b.Open(ctx, task("3")), a.Close(ctx, task("1")))
	none(t, a.Restore(ctx), b.Restore(ctx))
	s.holds(t, "2", "3")
	s.empty(t)
	none(t, a.Restore(ctx), b.Restore(ctx))
	s.holds(t, "2", "3")
	none(t, b.Close(ctx, task("2"))) // which another edge has opened
	none(t, a.Restore(ctx), b.Restore(ctx))
	s.holds(t, "3")
}

func TestATaskThatIsClosedWhilePresenceIsAwayIsClosedLater(t *testing.T) {
	s, ctx := newSite(t), t.Context()
	l := NewLedger(s.Store, time.Now, nil)
	none(t, l.Open(ctx, task("1")), l.Open(ctx, task("2")))
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := l.Close(gone, task("1")); code(err) != agora.Unavailable {
		t.Fatalf("closed with %v, want %s", err, agora.Unavailable)
	}
	s.holds(t, "1", "2")
	none(t, l.Restore(ctx))
	s.holds(t, "2")
	if err := l.Open(gone, task("3")); code(err) != agora.Unavailable {
		t.Fatalf("opened with %v, want %s", err, agora.Unavailable)
	}
	none(t, l.Restore(ctx))
	if s.holds(t, "2"); l.Held() != 1 {
		t.Errorf("%d are remembered, want 1", l.Held())
	}
}

func TestALedgerForgetsWhatIsOverAndRefusesWhatIsTooMuch(t *testing.T) {
	s, ctx := newSite(t), t.Context()
	now := time.Now()
	l := NewLedger(s.Store, func() time.Time { return now }, nil)
	give := func(i int, principal string) error {
		e := task(fmt.Sprint(principal, i))
		e.Until, e.By, e.Caller = now.Add(time.Minute), principal, agora.AgentID(fmt.Sprint(principal, "/", i))
		return l.remember(e)
	}
	n := 0
	for give(n, "mall") == nil { // by as many agents as it likes
		n++
	}
	if err := give(n, "mall"); n != maxOpen*3/4 || code(err) != agora.RateLimited || !strings.Contains(err.Error(), "this principal has as many open executes as it may") {
		t.Errorf("after %d of one principal: %v", n, err)
	}
	none(t, give(0, "joe"))
	now = now.Add(2 * time.Minute)
	more := task("more")
	more.By = "mall"
	none(t, l.Open(ctx, more))
	if l.Held() != 1 {
		t.Errorf("%d are remembered, want 1", l.Held())
	}
}

func TestManyUseOneLedger(t *testing.T) {
	s, ctx := newSite(t), t.Context()
	l := NewLedger(s.Store, time.Now, nil)
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			for k := range 8 {
				e := task(fmt.Sprint(i, k))
				if err := errors.Join(l.Open(ctx, e), l.Restore(ctx), l.Close(ctx, e)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	none(t, l.Restore(ctx))
	if s.holds(t); l.Held() != 0 {
		t.Errorf("%d are remembered, want none", l.Held())
	}
}

func TestALedgerLooksByItselfUntilItsContextIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		l := NewLedger(nil, time.Now, nil)
		e := task("1")
		e.Until = time.Now().Add(time.Second)
		l.remember(e)
		l.Run(ctx) // a minute later nothing is left, and presence is not asked
		if l.Held() != 0 {
			t.Errorf("%d are remembered, want none", l.Held())
		}
	})
}
