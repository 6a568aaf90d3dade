package presence_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// execute is a task that host has given to sub, for an hour.
func execute(request string, tools ...string) presence.Execute {
	return presence.Execute{
		Tenant: tenant, Callee: "sub", Caller: "the host", Request: request, Limited: tools != nil, Tools: tools,
		Until: time.UnixMilli(time.Now().Add(time.Hour).UnixMilli()),
	}
}

// open returns the requests of the executes that sub has open, sorted.
func open(t *testing.T, s *presence.Store) (requests []string) {
	t.Helper()
	for _, e := range must(s.Executes.Of(t.Context(), tenant, "sub"))(t) {
		requests = append(requests, e.Request)
	}
	slices.Sort(requests)
	return requests
}

func TestExecutesAreOpenUntilTheyAreClosed(t *testing.T) {
	eachServer(t, func(t *testing.T, sv *server) {
		s, ctx := sv.store(presence.Config{}), t.Context()
		want := []presence.Execute{execute("1"), execute("2", "read", "write \"it\""), execute("3\x00 odd", []string{}...), execute("4")}
		for _, e := range want {
			ok(t, s.Executes.Open(ctx, "edge", e))
		}
		got := must(s.Executes.Of(ctx, tenant, "sub"))(t)
		slices.SortFunc(got, func(a, b presence.Execute) int { return strings.Compare(a.Request, b.Request) })
		for i, e := range got {
			if !reflect.DeepEqual(e, want[i]) {
				t.Errorf("execute %d is\n%+v, want\n%+v", i, e, want[i])
			}
		}
		if none := must(s.Executes.Of(ctx, "other", "sub"))(t); len(got) != 4 || len(none) != 0 {
			t.Errorf("%d are open and %d of another tenant, want 4 and none", len(got), len(none))
		}
		ok(t, s.Executes.Close(ctx, want[0], want[2]))
		ok(t, s.Executes.Close(ctx, want[0])) // again
		if left := open(t, s); !slices.Equal(left, []string{"2", "4"}) {
			t.Errorf("open are %q, want 2 and 4", left)
		}
	})
}

func TestExecutesAreOverByTheClockThatTheyWereGivenBy(t *testing.T) {
	eachServer(t, func(t *testing.T, sv *server) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		s, ctx := sv.store(presence.Config{Now: now}), t.Context()
		e := execute("short")
		e.Until = time.Time{} // as long as usual
		ok(t, s.Executes.Open(ctx, "edge", e))
		ok(t, s.Executes.Open(ctx, "edge", execute("long")))
		ahead.Store(int64(presence.ExecuteLasts + time.Minute))
		if left := open(t, s); !slices.Equal(left, []string{"long"}) {
			t.Errorf("open are %q, want the long one", left)
		}
	})
}

func TestNothingStaysOfExecutes(t *testing.T) {
	eachServer(t, func(t *testing.T, sv *server) {
		s, c := sv.store(presence.Config{}), sv.client()
		defer c.Close()
		e := execute("1")
		e.Until = time.Now().Add(time.Second)
		ok(t, s.Executes.Open(t.Context(), "edge", e))
		key := "agora:1:{a:" + agora.EncodeToken(tenant) + "." + agora.EncodeToken("sub") + "}:executes"
		await.True(t, "the key is gone", func() bool { return c.Exists(t.Context(), key).Val() == 0 })
	})
}

func TestAnAgentHasSoManyExecutesAtMost(t *testing.T) {
	eachServer(t, func(t *testing.T, sv *server) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		s, ctx := sv.store(presence.Config{Now: now}), t.Context()
		all := make([]presence.Execute, presence.MaxExecutes)
		for i := range all {
			all[i] = execute(fmt.Sprint(i))
		}
		all[7].Until = now().Add(time.Minute)
		ok(t, s.Executes.OpenAgain(ctx, "edge", all))
		err := s.Executes.Open(ctx, "edge", execute("one more"))
		if e, is := errors.AsType[*agora.Error](err); !is || e.Code != agora.RateLimited || e.RetryAfter == 0 {
			t.Fatalf("one more: %v, want %s", err, agora.RateLimited)
		}
		ok(t, s.Executes.Open(ctx, "another", all[3])) // is there already
		ahead.Store(int64(2 * time.Minute))            // and one is over
		ok(t, s.Executes.Open(ctx, "edge", execute("one more")))
		long := execute("long", strings.Repeat("x", 65<<10))
		if e := agora.AsError(s.Executes.Open(ctx, "edge", long)); e == nil || e.Code != agora.InvalidRequest {
			t.Errorf("too many names: %v, want %s", e, agora.InvalidRequest)
		}
	})
}

func TestExecutesAreWrittenAgainOnlyWhereTheServerHasLostThem(t *testing.T) {
	eachServer(t, func(t *testing.T, sv *server) {
		s, ctx := sv.store(presence.Config{}), t.Context()
		mine, theirs := []presence.Execute{execute("1"), execute("2")}, []presence.Execute{execute("3")}
		for _, e := range mine {
			ok(t, s.Executes.Open(ctx, "mine", e))
		}
		ok(t, s.Executes.Open(ctx, "theirs", theirs[0]))
		ok(t, s.Executes.Close(ctx, mine[0])) // at another edge
		ok(t, s.Executes.OpenAgain(ctx, "mine", mine))
		if left := open(t, s); !slices.Equal(left, []string{"2", "3"}) {
			t.Errorf("open are %q, want 2 and 3: nothing was lost", left)
		}
		sv.empty()
		if _, err := s.Executes.Of(ctx, tenant, "sub"); !errors.Is(err, presence.ErrIncomplete) {
			t.Errorf("while the server is not whole: %v, want %v", err, presence.ErrIncomplete)
		}
		ok(t, s.Executes.OpenAgain(ctx, "mine", mine))
		ok(t, s.Executes.OpenAgain(ctx, "theirs", theirs))
		ok(t, s.SetWhole(ctx))
		if left := open(t, s); !slices.Equal(left, []string{"1", "2", "3"}) {
			t.Errorf("open are %q, want all that anybody remembers", left)
		}
	})
}

func TestAnExecuteThatCannotBeReadAllowsNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, sv *server) {
		s, c := sv.store(presence.Config{}), sv.client()
		defer c.Close()
		ok(t, s.Executes.Open(t.Context(), "edge", execute("1")))
		key := "agora:1:{a:" + agora.EncodeToken(tenant) + "." + agora.EncodeToken("sub") + "}:executes"
		for i, v := range []string{"", "9future", "1", "1x ", "1", "19999999999999 {"} {
			ok(t, c.HSet(t.Context(), key, fmt.Sprintf("host\x00odd%d", i), v).Err())
		}
		all := must(s.Executes.Of(t.Context(), tenant, "sub"))(t)
		if len(all) != 7 {
			t.Fatalf("%d are open, want 7", len(all))
		}
		for _, e := range all {
			if odd := e.Request != "1"; odd != e.Limited || len(e.Tools) != 0 {
				t.Errorf("%+v: want a limit of no tools, unless it can be read", e)
			}
		}
	})
}
