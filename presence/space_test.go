package presence_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func ids(s ...agora.AgentID) []agora.AgentID { return s }

func TestRosterChangesWaitInOrderUntilTheyAreAnnounced(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		a, b, c := claimIn(t, s, "a", "active"), claimIn(t, s, "b b", "active"), claimIn(t, s, "c", "active")
		_, err := s.Spaces.Join(t.Context(), a, "room", presence.Public, false)
		is(t, err, presence.ErrNoSpace)
		for _, claim := range []presence.Claim{a, b, c} {
			_ = must(s.Spaces.Join(t.Context(), claim, "room", presence.Public, true))(t)
		}
		_ = must(s.Spaces.Leave(t.Context(), b, "room"))(t)
		m := must(s.Spaces.Join(t.Context(), b, "room", presence.Public, false))(t)
		if !m.Changed || !slices.Equal(m.Members, ids("a", "c", "b b")) {
			t.Fatalf("membership %+v", m)
		}
		first := m.Pending[0].Version
		want := []presence.Change{
			{Version: first, Joined: "a", Members: ids("a")},
			{Version: first + 1, Joined: "b b", Members: ids("a", "b b")},
			{Version: first + 2, Joined: "c", Members: ids("a", "b b", "c")},
			{Version: first + 3, Left: "b b", Members: ids("a", "c")},
			{Version: first + 4, Joined: "b b", Members: ids("a", "c", "b b")},
		}
		if !reflect.DeepEqual(m.Pending, want) {
			t.Fatalf("pending\n%+v, want\n%+v", m.Pending, want)
		}
		ok(t, s.Spaces.Announced(t.Context(), tenant, "room", first+2))
		m = must(s.Spaces.Join(t.Context(), a, "room", presence.Public, true))(t)
		if m.Changed || !reflect.DeepEqual(m.Pending, want[3:]) {
			t.Fatalf("after announcing: %+v", m)
		}
		if got := must(s.Spaces.Members(t.Context(), tenant, "room"))(t); !slices.Equal(got, ids("a", "c", "b b")) {
			t.Fatalf("members %v", got)
		}
	})
}

func TestANewerSessionTakesTheMembershipOver(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		old := claimIn(t, s, "a", "active")
		_ = must(s.Spaces.Join(t.Context(), old, "room", presence.Public, true))(t)
		ended(t, s, old) // its edge died before it left the space
		c, rec := begun(t, s, claimant("a", "e2"))
		if len(rec.Spaces) != 0 {
			t.Fatalf("spaces of the old session: %v", rec.Spaces)
		}
		m := must(s.Spaces.Join(t.Context(), c, "room", presence.Public, true))(t)
		if m.Changed || len(m.Pending) != 1 {
			t.Fatalf("joined again: %+v", m)
		}
		if m = must(s.Spaces.Leave(t.Context(), old, "room"))(t); m.Changed {
			t.Fatal("the old session took the new one's membership away")
		}
		if m = must(s.Spaces.Leave(t.Context(), c, "room"))(t); !m.Changed || len(m.Members) != 0 {
			t.Fatalf("left: %+v", m)
		}
		_, err := s.Spaces.Leave(t.Context(), c, "nowhere")
		is(t, err, presence.ErrNoSpace)
	})
}

func TestASpaceHoldsNoMoreThanItsLimit(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		stores := []*presence.Store{srv.store(presence.Config{MaxMembers: 5}), srv.store(presence.Config{MaxMembers: 5})}
		var claims []presence.Claim
		for n := range 20 {
			claims = append(claims, claimIn(t, stores[0], agora.AgentID(fmt.Sprint("agent ", n)), "active"))
		}
		var wg sync.WaitGroup
		errs := make([]error, len(claims))
		for n, c := range claims {
			wg.Go(func() { _, errs[n] = stores[n%2].Spaces.Join(t.Context(), c, "room", presence.Public, true) })
		}
		wg.Wait()
		in := 0
		for n, err := range errs {
			member := must(stores[0].Spaces.IsMember(t.Context(), tenant, "room", claims[n].Agent))(t)
			if member != (err == nil) || err != nil && !errors.Is(err, presence.ErrFull) {
				t.Errorf("agent %d: %v, member %v", n, err, member)
			}
			if err == nil {
				in++
				continue
			}
			if rec := must(stores[0].Sessions.Begin(t.Context(), claims[n]))(t); len(rec.Spaces) != 0 {
				t.Errorf("refused agent %d has %v in its record", n, rec.Spaces)
			}
		}
		if in != 5 {
			t.Fatalf("%d members, want 5", in)
		}
	})
}

func TestEmptyPublicSpacesVanishAndOthersStay(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{EmptyGrace: 150 * time.Millisecond})
		presence.SetSettled(s, 10*time.Millisecond)
		c := claimIn(t, s, "a", "active")
		ok(t, s.Spaces.Create(t.Context(), tenant, "created", presence.Public))
		ok(t, s.Spaces.Create(t.Context(), tenant, "agent.status", presence.System))
		v1 := must(s.Spaces.Join(t.Context(), c, "room", presence.Public, true))(t).Pending[0].Version
		_ = must(s.Spaces.Join(t.Context(), c, "kept", presence.Public, true))(t)
		_ = must(s.Spaces.Leave(t.Context(), c, "kept"))(t)
		_ = must(s.Spaces.Join(t.Context(), c, "kept", presence.Public, true))(t)
		_ = must(s.Spaces.Leave(t.Context(), c, "room"))(t)
		await.True(t, "empty public spaces are gone", func() bool {
			got := must(s.Spaces.List(t.Context(), tenant))(t)
			want := []presence.Space{{"agent.status", "system", 0}, {"kept", "public", 1}}
			return slices.Equal(got, want)
		})
		for space, want := range map[string]bool{"room": false, "created": false, "kept": true, "agent.status": true} {
			if got := must(s.Spaces.Exists(t.Context(), tenant, space))(t); got != want {
				t.Errorf("%s exists: %v, want %v", space, got, want)
			}
		}
		_, err := s.Spaces.Members(t.Context(), tenant, "room")
		is(t, err, presence.ErrNoSpace)
		m := must(s.Spaces.Join(t.Context(), c, "room", presence.Public, true))(t)
		if len(m.Pending) != 1 || m.Pending[0].Version <= v1+1 {
			t.Fatalf("pending %+v, want one change with a version above %d", m.Pending, v1+1)
		}
	})
}

func TestMembershipsStandWithTheSession(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a", "active")
		_ = must(s.Spaces.Join(t.Context(), c, "task.x", presence.Public, true))(t)
		_ = must(s.Spaces.Join(t.Context(), c, "room", presence.Public, true))(t)
		_ = must(s.Spaces.Leave(t.Context(), c, "room"))(t)
		ok(t, s.Positions.Write(t.Context(), []presence.Moved{{Claim: c, Spaces: map[string]uint64{"task.x": 512, "room": 8}}}))
		ok(t, s.Sessions.End(t.Context(), c))
		e, rec, err := s.Sessions.Ending(t.Context(), tenant, "a")
		ok(t, err)
		if want := map[string]uint64{"task.x": 512}; !reflect.DeepEqual(rec.Spaces, want) {
			t.Fatalf("spaces %v, want %v", rec.Spaces, want)
		}
		_, err = s.Spaces.Join(t.Context(), c, "room", presence.Public, true)
		is(t, err, presence.ErrDeposed)
		m := must(s.Spaces.Leave(t.Context(), e, "task.x"))(t)
		if !m.Changed || m.Pending[len(m.Pending)-1].Left != "a" {
			t.Fatalf("membership %+v", m)
		}
	})
}

// A leave that is not told yet stays owed, with the agent's session; what an edge writes again meanwhile does not undo
// it, and what the session joins meanwhile stays.
func TestALeaveStaysOwedUntilItIsTold(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a", "active")
		_ = must(s.Spaces.Join(t.Context(), c, "room", presence.Public, true))(t)
		held := heldBy(c)
		held.Spaces = map[string]uint64{"room": 8}
		owed := func() []string {
			t.Helper()
			return must(s.Operators.Inspect(t.Context(), tenant, "a"))(t).Record.Leaving
		}
		_ = must(s.Spaces.Leave(t.Context(), c, "room"))(t)
		_ = must(s.Sessions.Reassert(t.Context(), claimant("a", "e1").Holder, []presence.Held{held}))(t)
		ok(t, s.Positions.Write(t.Context(), []presence.Moved{{Claim: c, Spaces: map[string]uint64{"room": 8}}}))
		if got := owed(); !reflect.DeepEqual(got, []string{"room"}) || must(s.Spaces.IsMember(t.Context(), tenant, "room", "a"))(t) {
			t.Fatalf("written again while it is told: owed %v, or a member again", got)
		}
		m := must(s.Spaces.Leave(t.Context(), c, "room"))(t)
		if len(m.Pending) == 0 || m.Pending[len(m.Pending)-1].Left != "a" {
			t.Fatalf("left once more: %+v, want the change that is not told", m)
		}
		_ = must(s.Spaces.Join(t.Context(), c, "room", presence.Public, true))(t)
		ok(t, s.Spaces.Left(t.Context(), c, "room"))
		rec := must(s.Operators.Inspect(t.Context(), tenant, "a"))(t).Record
		if _, in := rec.Spaces["room"]; !in || len(rec.Leaving) > 0 {
			t.Fatalf("joined while it was told: in %v, owed %v", rec.Spaces, rec.Leaving)
		}
		_ = must(s.Spaces.Leave(t.Context(), c, "room"))(t)
		ok(t, s.Spaces.Left(t.Context(), c, "room"))
		if got := owed(); len(got) > 0 {
			t.Fatalf("told, and owed are %v", got)
		}
	})
}
