package presence_test

import (
	"fmt"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// contested returns whose sessions at an edge are to be ended, as their addresses are others'.
func contested(t *testing.T, s *presence.Store, edge string) (ids []agora.AgentID) {
	t.Helper()
	for _, o := range must(s.Dials.Contested(t.Context(), claimant("", edge).Holder))(t) {
		ids = append(ids, o.Agent)
	}
	return ids
}

// displaced returns the session of agent a at e1, which presence has lost, and whose address it has given to b at e2.
func displaced(t *testing.T, srv *server, s *presence.Store) (presence.Claim, presence.ClaimRequest) {
	t.Helper()
	r := dialledTo("a", "e1", "x:1")
	c, rec := begun(t, s, r)
	r.Dial = rec.Dial
	srv.empty()
	ok(t, s.SetWhole(t.Context()))
	_, _ = begun(t, s, dialledTo("b", "e2", "x:1"))
	return c, r
}

// Presence loses a session, another agent is given its address, and only then its edge can say that it is there.
func TestASessionThatWasLostFindsItsAddressAnothers(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c, r := displaced(t, srv, s)
		again := func() {
			t.Helper()
			found := must(s.Sessions.Reassert(t.Context(), r.Holder, []presence.Held{{Claim: c, Request: r}}))(t)
			if len(found.Deposed) != 0 {
				t.Fatalf("deposed: %+v", found.Deposed)
			}
		}
		again()
		if ids := contested(t, s, "e1"); len(ids) != 1 || ids[0] != "a" {
			t.Errorf("contested: %q", ids)
		}
		if ids := contested(t, s, "e2"); len(ids) != 0 {
			t.Errorf("contested of who has it: %q", ids)
		}
		again()
		if f, is, err := s.Dials.Find(t.Context(), tenant, "b"); err != nil || !is || f.Dial.Address != "x:1" {
			t.Errorf("b has %+v, %v, %v", f, is, err)
		}
		if ids := contested(t, s, "e1"); len(ids) != 1 || ids[0] != "a" {
			t.Errorf("contested when it is written once more: %q", ids)
		}
	})
}

// An entry whose claim never came keeps nobody from its address: it is its agent's again.
func TestAnAddressIsTakenBackFromWhoNeverCame(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		raw := srv.client()
		defer raw.Close()
		r := dialledTo("a", "e1", "x:1")
		c, rec := begun(t, s, r)
		r.Dial = rec.Dial
		now := must(raw.Time(t.Context()).Result())(t).UnixMilli()
		ok(t, raw.HSet(t.Context(), presence.AddressesKey(tenant), "x:1", fmt.Sprint("default.b s-b ", now)).Err())
		_ = must(s.Sessions.Reassert(t.Context(), r.Holder, []presence.Held{{Claim: c, Request: r}}))(t)
		for range 2 { // it is looked at until that is known
			if ids := contested(t, s, "e1"); len(ids) != 0 {
				t.Errorf("contested by who may come: %q", ids)
			}
		}
		presence.SetSettled(s, 0)
		if ids := contested(t, s, "e1"); len(ids) != 0 {
			t.Errorf("contested by who never came: %q", ids)
		}
		presence.SetSettled(s, 1e12)
		if _, err := s.Sessions.Claim(t.Context(), dialledTo("c", "e2", "x:1")); taken(err) != "x:1 a false" {
			t.Errorf("another one claims it: %v", err)
		}
	})
}

// Anyone who adopts a session whose address has become another's is told so.
func TestAnAdoptedSessionMayHaveLostItsAddress(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c, r := displaced(t, srv, s)
		away := []presence.Held{{Claim: c, Request: r, Away: 1e12}}
		_ = must(s.Sessions.Reassert(t.Context(), r.Holder, away))(t)
		if ids := contested(t, s, "e1"); len(ids) != 0 {
			t.Errorf("contested where it is away, and nobody dials it: %q", ids)
		}
		by := claimant("a", "e2")
		by.Principal, by.Adopt = r.Principal, c.Epoch
		_ = must(s.Sessions.Claim(t.Context(), by))(t)
		if ids := contested(t, s, "e2"); len(ids) != 1 || ids[0] != "a" {
			t.Errorf("contested: %q", ids)
		}
	})
}
