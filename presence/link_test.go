package presence_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// linkTo returns how a link to an address stands; the zero one for none.
func linkTo(t *testing.T, s *presence.Store, address string, known ...presence.Link) presence.Link {
	t.Helper()
	all := must(s.Links.List(t.Context(), known))(t)
	if k := slices.IndexFunc(all, func(l presence.Link) bool { return l.Address == address }); k >= 0 {
		return all[k]
	}
	return presence.Link{}
}

// makesLink makes a link.
func makesLink(t *testing.T, s *presence.Store, address string, at time.Time) presence.Link {
	t.Helper()
	l, made, err := s.Links.Make(t.Context(), tenant, address, at)
	if err != nil || !made {
		t.Fatalf("Make %s = %v, %v", address, made, err)
	}
	return l
}

var linked = time.UnixMicro(1_700_000_000_000_001)

func TestALinkIsMadeOnceAndEndsOnce(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		l := makesLink(t, s, "a:1", linked)
		if again, made, err := s.Links.Make(t.Context(), tenant, "a:1", linked.Add(time.Hour)); err != nil || made || !again.Since.Equal(linked) {
			t.Errorf("made again it is %+v, %v, %v", again, made, err)
		}
		other, made, err := s.Links.Make(t.Context(), "other", "a:1", linked.Add(time.Hour))
		if err != nil || !made || other.Since.Equal(l.Since) {
			t.Errorf("another tenant's is %+v, %v, %v", other, made, err)
		}
		for _, want := range []bool{true, false} {
			if is, err := s.Links.End(t.Context(), tenant, "a:1"); err != nil || is != want {
				t.Errorf("End = %v, %v, want %v", is, err, want)
			}
		}
		if is, err := s.Links.End(t.Context(), tenant, "b:1"); err != nil || is {
			t.Errorf("one that never was ends: %v, %v", is, err)
		}
		all := must(s.Links.List(t.Context(), nil))(t)
		if len(all) != 2 {
			t.Fatalf("links %+v", all)
		}
		for _, l := range all {
			if l.Over.IsZero() == (l.Tenant == tenant) {
				t.Errorf("link %+v", l)
			}
		}
		if l := makesLink(t, s, "a:1", linked); !l.Since.After(linked) {
			t.Errorf("made anew it is of %v, which was the first one's", l.Since)
		}
	})
}

// Presence may come back empty, or as it was a while ago.
func TestALinkIsWrittenAgainWhereItWasLost(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		makesLink(t, s, "a:1", linked)
		makesLink(t, s, "b:1", linked)
		_ = must(s.Links.End(t.Context(), tenant, "b:1"))(t)
		known := must(s.Links.List(t.Context(), nil))(t)
		srv.empty()
		makesLink(t, s, "b:1", linked) // as it had been before
		got := must(s.Links.List(t.Context(), known))(t)
		if len(got) != 2 {
			t.Fatalf("there are %+v", got)
		}
		for _, l := range got {
			if l.Over.IsZero() != (l.Address == "a:1") {
				t.Errorf("link %+v", l)
			}
		}
		anew := makesLink(t, s, "b:1", linked)
		if l := linkTo(t, s, "b:1", known...); !l.Over.IsZero() || !l.Since.Equal(anew.Since) {
			t.Errorf("what is known of old ends the new one: %+v", l)
		}
		gone := presence.Link{Tenant: tenant, Address: "c:1", Since: linked, Over: time.Now().Add(-2 * presence.LinkKept)}
		if l := linkTo(t, s, "c:1", gone); l.Address != "" {
			t.Errorf("one that was over long ago is remembered: %+v", l)
		}
	})
}

func TestALinkIsHeldByOneEdgeAtATime(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		l := makesLink(t, s, "a:1", linked)
		one, two := presence.Holder{Edge: "edge 1", Incarnation: "x"}, presence.Holder{Edge: "edge 2", Incarnation: "y"}
		holds := func(h presence.Holder, lasts time.Duration, state string) bool {
			return must(s.Links.Hold(t.Context(), l, h, lasts, state))(t)
		}
		if !holds(one, time.Hour, "up and \"well\"") || holds(two, time.Hour, "") || !holds(one, time.Hour, "still up") {
			t.Fatal("the first one does not hold it alone")
		}
		if got := linkTo(t, s, "a:1"); got.Holder != one || got.State != "still up" {
			t.Errorf("link %+v", got)
		}
		ok(t, s.Links.Leave(t.Context(), l, two))
		if holds(two, time.Hour, "") {
			t.Error("who does not hold it lets go of it")
		}
		ok(t, s.Links.Leave(t.Context(), l, one))
		if got := linkTo(t, s, "a:1"); got.Holder != (presence.Holder{}) || got.State != "" {
			t.Errorf("let go of it is %+v", got)
		}
		holds(one, time.Millisecond, "")
		await.True(t, "another one takes it when its time is over", func() bool { return holds(two, time.Hour, "") })
		_ = must(s.Links.End(t.Context(), tenant, "a:1"))(t)
		if !holds(two, time.Hour, "clearing") {
			t.Error("one that was ended is not held to be cleared away")
		}
		anew := makesLink(t, s, "a:1", linked)
		if holds(two, time.Hour, "") {
			t.Error("what was ended is held as what was made anew")
		}
		if is := must(s.Links.Hold(t.Context(), anew, two, time.Hour, ""))(t); !is {
			t.Error("its holder does not get what was made anew")
		}
	})
}

// by returns who claims an agent for a link.
func by(l presence.Link, id agora.AgentID, edge string) presence.ClaimRequest {
	r := claimant(id, edge)
	r.Principal = l.Principal()
	return r
}

// Anyone who comes here by itself has the id at once that a link has, in whatever state that is.
func TestALinksSessionMakesRoom(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		older, younger := presence.Link{Address: "a:1", Since: linked}, presence.Link{Address: "b:1", Since: linked.Add(time.Minute)}
		for _, state := range []string{"active", "grace"} {
			for _, who := range []string{"somebody", "an older link"} {
				id := agora.AgentID(state + who)
				r, held := claimant(id, "e2"), by(younger, id, "e1")
				renewed(t, s, held.Holder)
				c, _ := begun(t, s, held)
				if state == "grace" {
					ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false))
				}
				if who == "somebody" {
					_, err := s.Sessions.Claim(t.Context(), r)
					is(t, err, presence.ErrEnding)
					finishes(t, s, id)
				} else { // nobody sees it gone
					r = by(older, id, "e2")
				}
				got, err := s.Sessions.Claim(t.Context(), r)
				if err != nil || got.Resumed != (who != "somebody") {
					t.Errorf("%s, %s: then it is %+v, %v", state, who, got, err)
				}
				for _, p := range got.Unsettled {
					_ = must(s.Sessions.Settle(t.Context(), got, p, true))(t)
				}
				if _, err := s.Sessions.Claim(t.Context(), held); !errors.Is(err, presence.ErrExists) {
					t.Errorf("%s, %s: the younger link gets it again: %v", state, who, err)
				}
			}
			id := agora.AgentID(state + "younger")
			held := by(older, id, "e1")
			c, _ := begun(t, s, held)
			if state == "grace" {
				ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false))
			}
			_, err := s.Sessions.Claim(t.Context(), by(younger, id, "e2"))
			is(t, err, presence.ErrExists)
			_, _, err = s.Registrations.Register(t.Context(), registration(agora.Agent{ID: id}, "alice"), time.Hour)
			is(t, err, presence.ErrEnding)
			finishes(t, s, id)
			registers(t, s, registration(agora.Agent{ID: id}, "alice"), time.Hour, agora.Online)
			_, err = s.Sessions.Claim(t.Context(), held)
			is(t, err, presence.ErrOwned)
		}
	})
}

// finishes finishes a session that is ending.
func finishes(t *testing.T, s *presence.Store, id agora.AgentID) {
	t.Helper()
	c, _, err := s.Sessions.Ending(t.Context(), tenant, id)
	ok(t, err)
	for _, p := range c.Unsettled {
		_ = must(s.Sessions.Settle(t.Context(), c, p, true))(t)
	}
	ok(t, s.Sessions.Finished(t.Context(), c, false))
}

// The mail of an agent that is away is not a link's; the id of one that is dialled is free when it is gone.
func TestALinkHasNoIDThatIsSomebodys(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		link := presence.Link{Address: "a:1", Since: linked}
		for _, dialled := range []bool{false, true} {
			r := claimant(agora.AgentID(map[bool]string{false: "away", true: "dialled"}[dialled]), "e1")
			if dialled {
				r.Dial = &presence.Dialled{Address: "n:1"}
			}
			renewed(t, s, r.Holder)
			c, _ := begun(t, s, r)
			_, err := s.Sessions.Claim(t.Context(), by(link, r.Agent, "e2"))
			is(t, err, presence.ErrExists)
			ok(t, s.Sessions.End(t.Context(), c))
			finishes(t, s, r.Agent)
			_, err = s.Sessions.Claim(t.Context(), by(link, r.Agent, "e2"))
			if want := map[bool]error{false: presence.ErrOwned}[dialled]; !errors.Is(err, want) {
				t.Errorf("%s: claimed by a link it is %v, want %v", r.Agent, err, want)
			}
		}
		brief := srv.store(presence.Config{Known: time.Millisecond})
		c, _ := begun(t, brief, claimant("forgotten", "e1"))
		ok(t, brief.Sessions.End(t.Context(), c))
		finishes(t, brief, "forgotten")
		await.True(t, "nobody knows the agent any more", func() bool {
			_, err := brief.Sessions.Claim(t.Context(), by(link, "forgotten", "e2"))
			return err == nil
		})
	})
}

func TestALinksPrincipalIsLikeNobodyElses(t *testing.T) {
	t.Parallel()
	l := presence.Link{Address: "a:1", Since: linked}
	if !presence.IsLink(l.Principal()) || !strings.Contains(l.Principal(), "a:1") || presence.IsLink("alice") || presence.IsLink("") {
		t.Errorf("principal %q", l.Principal())
	}
}
