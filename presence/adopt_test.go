package presence_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// dialledTo is a request of one agent whom an edge has dialled at an address.
func dialledTo(id agora.AgentID, edge, address string) presence.ClaimRequest {
	r := claimant(id, edge)
	r.Session = "s-" + string(id) + "-" + edge
	r.Token = "token-" + r.Session
	r.Dial = &presence.Dialled{Address: address, By: []byte("alice, by " + edge)}
	return r
}

// taken returns by whom an address is, as the error of a claim says.
func taken(err error) string {
	e, ok := errors.AsType[*presence.AddressError](err)
	if !ok {
		return fmt.Sprint(err)
	}
	return fmt.Sprint(e.Address, " ", e.By, " ", e.Pending)
}

func TestAnAddressHasOneAgentOfATenant(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		var all sync.WaitGroup
		var mu sync.Mutex
		var won []presence.Claim
		for n := range 20 {
			all.Go(func() {
				c, err := s.Sessions.Claim(t.Context(), dialledTo(agora.AgentID(fmt.Sprint("racer-", n)), "e1", "x:1"))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, c)
				} else if _, is := errors.AsType[*presence.AddressError](err); !is {
					t.Errorf("claim: %v", err)
				}
			})
		}
		all.Wait()
		if len(won) != 1 || !won[0].Dialled {
			t.Fatalf("%d have the address: %+v", len(won), won)
		}
		owner := won[0]
		renewed(t, s, claimant("a", "e1").Holder)
		other := dialledTo("b", "e2", "x:1")
		if _, err := s.Sessions.Claim(t.Context(), other); taken(err) != fmt.Sprintf("x:1 %s false", owner.Agent) {
			t.Errorf("another agent claims it: %v", err)
		}
		elsewhere := other
		elsewhere.Tenant = "another"
		_ = must(s.Sessions.Claim(t.Context(), elsewhere))(t)
		_, err := s.Sessions.Claim(t.Context(), dialledTo(owner.Agent, "e2", "x:1")) // refused, as the first is alive: its address is its own still
		is(t, err, presence.ErrExists)
		if _, err := s.Sessions.Claim(t.Context(), other); taken(err) != fmt.Sprintf("x:1 %s false", owner.Agent) {
			t.Errorf("claimed after the owner was refused another connection: %v", err)
		}
		ok(t, s.Sessions.End(t.Context(), owner))
		if _, err := s.Sessions.Claim(t.Context(), other); taken(err) != fmt.Sprintf("x:1 %s false", owner.Agent) {
			t.Errorf("claimed before the session is finished: %v", err)
		}
		c, rec, err := s.Sessions.Ending(t.Context(), tenant, owner.Agent)
		ok(t, err)
		if rec.Dial == nil || rec.Dial.Address != "x:1" || string(rec.Dial.By) != "alice, by e1" || !c.Dialled {
			t.Fatalf("ending %+v, %+v", c, rec.Dial)
		}
		ok(t, s.Sessions.Finished(t.Context(), c, false))
		if _, err := s.Sessions.Claim(t.Context(), other); taken(err) != fmt.Sprintf("x:1 %s true", owner.Agent) {
			t.Errorf("claimed before the address is free: %v", err)
		}
		ok(t, s.Dials.FreeAddress(t.Context(), c, *rec.Dial))
		b, rec := begun(t, s, other)
		if rec.Dial == nil || rec.Dial.Address != "x:1" {
			t.Fatalf("begun with %+v", rec.Dial)
		}
		ok(t, s.Dials.FreeAddress(t.Context(), c, presence.Dialled{Address: "x:1"})) // late: it is another's
		if _, err := s.Sessions.Claim(t.Context(), dialledTo("c", "e1", "x:1")); taken(err) != "x:1 b false" {
			t.Errorf("claimed though it was given away: %v", err)
		}
		ok(t, s.Sessions.Lose(t.Context(), b, presence.Position{}, nil, false))
		moved, rec := begun(t, s, dialledTo("b", "e1", "y:1"))
		if !moved.Resumed || rec.Dial.Address != "y:1" {
			t.Errorf("moved %+v, %+v", moved, rec.Dial)
		}
		_ = must(s.Sessions.Claim(t.Context(), dialledTo("c", "e1", "x:1")))(t)
		ok(t, s.Sessions.Lose(t.Context(), moved, presence.Position{}, nil, false))
		back, rec := begun(t, s, claimant("b", "e1")) // by a connection of its own
		if back.Dialled || rec.Dial != nil {
			t.Errorf("back as %+v, %+v", back, rec.Dial)
		}
		_ = must(s.Sessions.Claim(t.Context(), dialledTo("d", "e1", "y:1")))(t)
	})
}

// What was written for a claim that never came is nobody's after a while.
func TestAnAddressThatNobodyClaimedIsFreeInAWhile(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		a, rec := begun(t, s, dialledTo("a", "e1", "x:1"))
		ok(t, s.Sessions.End(t.Context(), a))
		e, _, err := s.Sessions.Ending(t.Context(), tenant, "a")
		ok(t, err)
		ok(t, s.Sessions.Finished(t.Context(), e, false)) // and its edge dies before the address is free
		if _, err := s.Sessions.Claim(t.Context(), dialledTo("b", "e1", "x:1")); taken(err) != "x:1 a true" {
			t.Errorf("claimed at once: %v, of %+v", err, rec.Dial)
		}
		presence.SetSettled(s, 0)
		_ = must(s.Sessions.Claim(t.Context(), dialledTo("b", "e1", "x:1")))(t)
	})
}

func TestOfManyThatAdoptASessionTheFirstHasIt(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		first, _ := begun(t, s, dialledTo("a", "e1", "x:1"))
		renewed(t, s, claimant("a", "e1").Holder) // alive or not: who adopts knows
		o, is, err := s.Dials.Find(t.Context(), tenant, "a")
		if err != nil || !is || o.Epoch != first.Epoch || o.Phase != presence.Active || o.Holder != claimant("a", "e1").Holder || o.Dial.Address != "x:1" || o.Principal != "alice" || o.Card.Name != "the a" {
			t.Fatalf("found %+v, %v, %v", o, is, err)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		var won []presence.Claim
		for n := range 16 {
			all.Go(func() {
				r := dialledTo("a", fmt.Sprint("adopter-", n), "")
				r.Dial, r.Adopt = nil, o.Epoch
				c, err := s.Sessions.Claim(t.Context(), r)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, c)
				} else if !errors.Is(err, presence.ErrDeposed) {
					t.Errorf("claim: %v", err)
				}
			})
		}
		all.Wait()
		if len(won) != 1 || !won[0].Resumed || !won[0].Dialled || won[0].Session != first.Session || len(won[0].Unsettled) != 1 {
			t.Fatalf("adopted by %d: %+v", len(won), won)
		}
		if _, err := s.Sessions.Settle(t.Context(), won[0], won[0].Unsettled[0], false); err != nil {
			t.Fatal(err)
		}
		if rec := must(s.Sessions.Begin(t.Context(), won[0]))(t); rec.Dial == nil || rec.Dial.Address != "x:1" || string(rec.Dial.By) != "alice, by e1" {
			t.Errorf("begun with %+v", rec.Dial)
		}
		ok(t, s.Dials.SetBy(t.Context(), won[0], []byte("later")))
		if err := s.Dials.SetBy(t.Context(), first, []byte("never")); !errors.Is(err, presence.ErrDeposed) {
			t.Errorf("the first one says by whom: %v", err)
		}
		if o, _, _ := s.Dials.Find(t.Context(), tenant, "a"); string(o.Dial.By) != "later" {
			t.Errorf("dialled %+v", o.Dial)
		}
		plain, _ := begun(t, s, claimant("plain", "e1"))
		r := dialledTo("plain", "e2", "")
		r.Dial, r.Adopt = nil, plain.Epoch
		if _, err := s.Sessions.Claim(t.Context(), r); !errors.Is(err, presence.ErrDeposed) {
			t.Errorf("a session is adopted that was not dialled: %v", err)
		}
	})
}

// orphans returns the agents whose sessions are to be adopted.
func orphans(t *testing.T, s *presence.Store) (ids []agora.AgentID, all []presence.Orphan) {
	t.Helper()
	all = must(s.Dials.Orphans(t.Context(), 100))(t)
	for _, o := range all {
		ids = append(ids, o.Agent)
	}
	return ids, all
}

func TestSessionsThatLoseTheirEdgeAreToBeAdopted(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		h := claimant("a", "e1").Holder
		renewed(t, s, h)
		lost, _ := begun(t, s, dialledTo("lost", "e1", "x:1"))
		offered, _ := begun(t, s, dialledTo("offered", "e1", "x:2"))
		_, _ = begun(t, s, dialledTo("held", "e1", "x:3"))
		plain, _ := begun(t, s, claimant("plain", "e1"))
		if ids, _ := orphans(t, s); len(ids) != 0 {
			t.Fatalf("at first: %q", ids)
		}
		ok(t, s.Sessions.Lose(t.Context(), lost, presence.Position{}, nil, false))
		ok(t, s.Sessions.Lose(t.Context(), plain, presence.Position{}, nil, false))
		if ids, all := orphans(t, s); fmt.Sprint(ids) != "[lost]" || all[0].Phase != presence.InGrace {
			t.Fatalf("one is lost: %+v", all)
		}
		ok(t, s.Dials.Offer(t.Context(), offered))
		_, all := orphans(t, s)
		if len(all) != 2 || all[0].Offered || !all[1].Offered || all[1].Phase != presence.Active {
			t.Fatalf("one is offered: %+v", all)
		}
		o, twin := all[0], all[0]
		if !must(s.Dials.Keep(t.Context(), &o, time.Hour))(t) || must(s.Dials.Keep(t.Context(), &twin, time.Hour))(t) {
			t.Error("not kept by the first alone")
		}
		if ids, _ := orphans(t, s); fmt.Sprint(ids) != "[offered]" {
			t.Errorf("one is kept: %q", ids)
		}
		ok(t, s.Dials.Left(t.Context(), twin)) // says nothing
		ok(t, s.Dials.Left(t.Context(), o))
		await.True(t, "the one that is left is there for others", func() bool {
			_, all = orphans(t, s)
			return len(all) == 2
		})
		for _, o := range all {
			ok(t, s.Dials.Adopted(t.Context(), o))
		}
		if ids, _ := orphans(t, s); len(ids) != 0 {
			t.Errorf("they are adopted: %q", ids)
		}
		if silent := must(s.Dials.Holders(t.Context(), presence.Holder{}))(t); len(silent) != 1 || silent[0].Holder != h || !silent[0].Alive {
			t.Errorf("holders %+v", silent)
		}
		if silent := must(s.Dials.Holders(t.Context(), h))(t); len(silent) != 0 {
			t.Errorf("others' holders %+v", silent)
		}
		for range 2 {
			ok(t, s.Dials.Forsaken(t.Context(), h))
		}
		if ids, _ := orphans(t, s); len(ids) != 3 {
			t.Errorf("their edge is gone: %q", ids)
		}
	})
}

// Nobody has to look for an edge whose lease is over: the sweep lists what it had.
func TestTheSweepListsWhatADeadEdgeHadDialled(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Lease: 200 * time.Millisecond})
		h := claimant("a", "e1").Holder
		renewed(t, s, h)
		_ = must(s.Sessions.Claim(t.Context(), dialledTo("a", "e1", "x:1")))(t)
		_ = must(s.Sessions.Claim(t.Context(), claimant("plain", "e1")))(t)
		await.True(t, "it is to be adopted", func() bool {
			_ = must(s.Sweep(t.Context(), presence.Holder{Edge: "sweeper", Incarnation: "i"}, 10))(t)
			ids, all := orphans(t, s)
			return len(ids) == 1 && all[0].Phase == presence.InGrace
		})
	})
}

// An edge finds that the server has lost everything, tells it what it holds, and dies before it renews its lease once
// more.
func TestAnEdgeThatDiesAsItHasToldALossIsFoundDead(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Lease: 200 * time.Millisecond})
		sweeper := presence.Holder{Edge: "sweeper", Incarnation: "i"}
		r := dialledTo("a", "e1", "x:1")
		renewed(t, s, r.Holder)
		c, rec := begun(t, s, r)
		srv.empty()
		await.True(t, "the server is back", func() bool { return s.SetWhole(t.Context()) == nil })
		r.Dial = rec.Dial
		for n := range 2 {
			found := must(s.Sessions.Reassert(t.Context(), r.Holder, []presence.Held{{Claim: c, Request: r}}))(t)
			if n == 0 && !found.Unleased {
				t.Error("the lease was not found gone")
			}
		}
		await.True(t, "it is to be adopted", func() bool {
			_ = must(s.Sweep(t.Context(), sweeper, 10))(t)
			ids, all := orphans(t, s)
			return len(ids) == 1 && all[0].Phase == presence.InGrace
		})
	})
}

func TestAddressesAndOrphansSurviveALoss(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		r, away := dialledTo("a", "e1", "x:1"), dialledTo("away", "e1", "x:2")
		c, rec := begun(t, s, r)
		lost, lostRec := begun(t, s, away)
		srv.empty()
		await.True(t, "the lease is back", func() bool { _, err := s.Leases.Renew(t.Context(), r.Holder, ""); return err == nil })
		if _, err := s.Sessions.Claim(t.Context(), dialledTo("b", "e2", "x:1")); !errors.Is(err, presence.ErrIncomplete) {
			t.Errorf("claimed while it may be another's: %v", err)
		}
		r.Dial, away.Dial = rec.Dial, lostRec.Dial
		held := []presence.Held{{Claim: c, Request: r}, {Claim: lost, Request: away, Away: time.Hour}}
		for range 2 {
			if deposed := must(s.Sessions.Reassert(t.Context(), r.Holder, held))(t).Deposed; len(deposed) != 0 {
				t.Fatalf("deposed %+v", deposed)
			}
		}
		ok(t, s.SetWhole(t.Context()))
		for _, address := range []string{"x:1", "x:2"} {
			if _, err := s.Sessions.Claim(t.Context(), dialledTo("b", "e2", address)); !isAddress(err) {
				t.Errorf("%s: %v", address, err)
			}
		}
		again := dialledTo("a", "e2", "x:3")
		again.Resume = r.Token
		moved, _ := begun(t, s, again)
		late := []presence.Held{{Claim: c, Request: r}}
		if deposed := must(s.Sessions.Reassert(t.Context(), r.Holder, late))(t).Deposed; len(deposed) != 1 || moved.Epoch <= c.Epoch {
			t.Fatalf("deposed %+v by %+v", deposed, moved)
		}
		_ = must(s.Sessions.Claim(t.Context(), dialledTo("b", "e2", "x:1")))(t) // which the one who comes late has not
		if ids, all := orphans(t, s); fmt.Sprint(ids) != "[away]" || string(all[0].Dial.By) != "alice, by e1" {
			t.Errorf("to be adopted: %+v", all)
		}
		ok(t, s.Dials.Forsaken(t.Context(), again.Holder))
		if ids, _ := orphans(t, s); len(ids) != 3 { // a, b and the one that is away
			t.Errorf("to be adopted when the edge is gone: %q", ids)
		}
	})
}

func isAddress(err error) bool {
	_, is := errors.AsType[*presence.AddressError](err)
	return is
}
