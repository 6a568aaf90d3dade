package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// limitedFor returns when an error says to try again; 0 where it is no RATE_LIMITED.
func limitedFor(err error) time.Duration {
	if e, ok := errors.AsType[*agora.Error](err); ok && e.Code == agora.RateLimited {
		return e.RetryAfter
	}
	return 0
}

func TestWhoHasSpentItsTimeIsRefusedUntilItHasSomeAgain(t *testing.T) {
	now, refused := time.Now(), 0
	b := newAllowance(100*time.Millisecond, func() { refused++ })
	b.now = func() time.Time { return now }
	take := func(owner string, d time.Duration) error {
		a, turn, err := b.enter(owner)
		if err == nil && turn != nil {
			t.Fatal("it has to wait")
		}
		if err == nil {
			b.leave(a, d)
		}
		return err
	}
	if err := take("a", 3*time.Second); err != nil { // a burst is 1 s: the last check may go beyond it
		t.Fatal(err)
	}
	if d := limitedFor(take("a", 0)); d < 20*time.Second || d > 21*time.Second {
		t.Errorf("it may try again after %v, want 20s", d)
	}
	if err := take("b", time.Second); err != nil {
		t.Errorf("another one: %v", err)
	}
	now = now.Add(21 * time.Second)
	if err := take("a", 0); err != nil {
		t.Errorf("later: %v", err)
	}
	if refused != 1 {
		t.Errorf("%d refusals are counted, want 1", refused)
	}
	now = now.Add(time.Hour)
	for i := range mostOwners + 10 {
		if err := take(fmt.Sprint(i), 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(b.owners); n > mostOwners {
		t.Errorf("%d owners are remembered", n)
	}
}

func TestTheTimeOfProcessorsThatChecksTakeIsCounted(t *testing.T) {
	c := New(Config{Time: time.Millisecond})
	schema := []byte(`{"type":"array","items":{"pattern":"^(a+b)*$"}}`)
	arguments := []byte(`["` + strings.Repeat("aab", 2000) + `"]`)
	callee := agora.Agent{ID: "host", Tools: []agora.Skill{{Name: "t", Schema: schema}}}
	await.True(t, "its time is spent", func() bool {
		err := c.Within(t.Context(), "default", "mallory", "m/1", func() error { return c.CheckCall(callee, "t", arguments) })
		return limitedFor(err) > 0
	})
	check := func(principal string, agent agora.AgentID) error {
		return c.Within(t.Context(), "default", principal, agent, func() error { return c.CheckCall(callee, "t", arguments) })
	}
	if d := limitedFor(check("mallory", "m/2")); d == 0 {
		t.Error("another agent of the same principal has a budget of its own")
	}
	if err := check("alice", "m/1"); err != nil {
		t.Errorf("another principal: %v", err)
	}
	if err := check("", "bob"); err != nil {
		t.Errorf("an agent where nobody has asked for its principal: %v", err)
	}
	if c.Stats().Time.Load() < 2 {
		t.Error("what was refused is not counted")
	}
}

func TestPrincipalsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newAllowance(time.Hour, func() {})
		b.workers = 1
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		hold := make(chan struct{})
		all.Go(func() { _ = b.do(t.Context(), "m", func() error { <-hold; return nil }) })
		synctest.Wait()
		ask := func(owner string) {
			all.Go(func() {
				err := b.do(t.Context(), owner, func() error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, owner)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for range 5 {
			ask("m")
		}
		ask("a")
		ask("b")
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if err := b.do(ctx, "c", func() error { t.Error("who has gone is served"); return nil }); err == nil {
				t.Error("who has gone is served")
			}
		})
		synctest.Wait()
		cancel()
		close(hold)
		all.Wait()
		if got := strings.Join(order, ""); got != "mabmmmm" {
			t.Errorf("they are served in the order %s, want mabmmmm", got)
		}
		if b.running != 0 || len(b.turns) != 0 {
			t.Errorf("%d run and %d wait in the end", b.running, len(b.turns))
		}
	})
}

func TestOnePrincipalsChecksThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newAllowance(time.Hour, func() {})
		b.workers = 1
		hold := make(chan struct{})
		var all sync.WaitGroup
		for range mostWaiting + 1 {
			all.Go(func() { _ = b.do(t.Context(), "m", func() error { <-hold; return nil }) })
			synctest.Wait()
		}
		if d := limitedFor(b.do(t.Context(), "m", func() error { return nil })); d == 0 {
			t.Error("one more waits")
		}
		close(hold)
		all.Wait()
	})
}
