package presence_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

func TestClaimDecidesByStatePrincipalAndToken(t *testing.T) {
	const none, active, dead, grace, over, ending = "none", "active", "dead", "grace", "grace over", "ending"
	cases := []struct {
		state   string
		change  func(r *presence.ClaimRequest, held presence.Claim)
		want    error
		resumed bool
	}{
		{none, nil, nil, false},
		{active, nil, presence.ErrExists, false},
		{active, func(r *presence.ClaimRequest, _ presence.Claim) { r.Resume = "token-e1" }, nil, true},
		{active, func(r *presence.ClaimRequest, _ presence.Claim) { r.Resume = "wrong" }, presence.ErrExists, false},
		{active, func(r *presence.ClaimRequest, _ presence.Claim) { r.Resume, r.Principal = "token-e1", "mallory" }, presence.ErrExists, false},
		{active, func(r *presence.ClaimRequest, c presence.Claim) { r.Evict = c.Epoch }, nil, true},
		{active, func(r *presence.ClaimRequest, c presence.Claim) { r.Evict = c.Epoch - 1 }, presence.ErrExists, false},
		{active, func(r *presence.ClaimRequest, c presence.Claim) { r.Evict, r.Principal = c.Epoch, "mallory" }, presence.ErrExists, false},
		{active, func(r *presence.ClaimRequest, c presence.Claim) { r.Evict, r.Resume = c.Epoch, "wrong" }, presence.ErrWrongToken, false},
		{dead, nil, nil, true},
		{dead, func(r *presence.ClaimRequest, _ presence.Claim) { r.Principal = "mallory" }, presence.ErrExists, false},
		{dead, func(r *presence.ClaimRequest, _ presence.Claim) { r.Resume = "wrong" }, presence.ErrWrongToken, false},
		{grace, nil, nil, true},
		{grace, func(r *presence.ClaimRequest, _ presence.Claim) { r.Resume = "token-e1" }, nil, true},
		{grace, func(r *presence.ClaimRequest, _ presence.Claim) { r.Resume = "wrong" }, presence.ErrWrongToken, false},
		{grace, func(r *presence.ClaimRequest, _ presence.Claim) { r.Resume, r.Principal = "wrong", "mallory" }, presence.ErrExists, false},
		{grace, func(r *presence.ClaimRequest, _ presence.Claim) { r.Principal = "mallory" }, presence.ErrExists, false},
		{grace, func(r *presence.ClaimRequest, c presence.Claim) { r.ResumeSession, r.Resume = c.Session, "wrong" }, presence.ErrWrongToken, false},
		{grace, func(r *presence.ClaimRequest, _ presence.Claim) { r.ResumeSession = "another" }, presence.ErrEnding, false},
		{dead, func(r *presence.ClaimRequest, _ presence.Claim) { r.ResumeSession = "another" }, presence.ErrEnding, false},
		{active, func(r *presence.ClaimRequest, _ presence.Claim) { r.ResumeSession = "another" }, presence.ErrExists, false},
		{active, func(r *presence.ClaimRequest, c presence.Claim) { r.ResumeSession, r.Evict = "another", c.Epoch }, presence.ErrEnding, false},
		{over, nil, presence.ErrEnding, false},
		{ending, nil, presence.ErrEnding, false},
	}
	eachServer(t, func(t *testing.T, srv *server) {
		calm, brief := srv.store(presence.Config{}), srv.store(presence.Config{Grace: time.Millisecond})
		for i, c := range cases {
			s := calm
			if c.state == over {
				s = brief
			}
			id := agora.AgentID("agent " + string(rune('a'+i)))
			var held presence.Claim
			if c.state != none {
				held = claimIn(t, s, id, c.state)
			}
			r := claimant(id, "e2")
			if c.change != nil {
				c.change(&r, held)
			}
			if c.state == over {
				await.True(t, "grace is over", func() bool {
					stranger := r // who can't resume it before
					stranger.Principal = "mallory"
					_, err := s.Sessions.Claim(t.Context(), stranger)
					return errors.Is(err, presence.ErrEnding)
				})
			}
			got, err := s.Sessions.Claim(t.Context(), r)
			if !errors.Is(err, c.want) || got.Resumed != c.resumed {
				t.Errorf("case %d, %s: claim = %v, resumed %v; want %v, %v", i, c.state, err, got.Resumed, c.want, c.resumed)
				continue
			}
			checkClaim(t, c.state, got, held, err)
		}
	})
}

// claimIn brings an agent, held by e1, into a state.
func claimIn(t *testing.T, s *presence.Store, id agora.AgentID, state string) presence.Claim {
	t.Helper()
	r := claimant(id, "e1")
	if state == "dead" {
		r.Holder.Incarnation = "never had a lease"
	} else {
		renewed(t, s, r.Holder)
	}
	c, _ := begun(t, s, r)
	switch state {
	case "grace", "grace over":
		ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false))
	case "ending":
		ok(t, s.Sessions.End(t.Context(), c))
	}
	return c
}

func checkClaim(t *testing.T, state string, got, held presence.Claim, err error) {
	t.Helper()
	switch {
	case errors.Is(err, presence.ErrExists):
		if p := got.Incumbent; p.Epoch != held.Epoch || p.Holder.Edge != "e1" {
			t.Errorf("%s: incumbent %v, want e1 %d", state, p, held.Epoch)
		}
	case got.Resumed:
		past := got.Unsettled
		if len(past) != 1 || past[0].Holder.Edge != "e1" || past[0].Epoch != held.Epoch || got.Session != held.Session || got.Epoch <= held.Epoch {
			t.Errorf("%s: resumed as %+v after %+v", state, got, held)
		}
	case err == nil:
		if len(got.Unsettled) != 0 || got.Session != "s-e2" || got.Epoch == 0 {
			t.Errorf("%s: new claim %+v", state, got)
		}
	}
}

func TestOneOfTwoClaimersAtTheSameInstantWins(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 20
	}
	eachServer(t, func(t *testing.T, srv *server) {
		stores := []*presence.Store{srv.store(presence.Config{}), srv.store(presence.Config{})}
		for _, e := range []string{"e0", "e1"} {
			renewed(t, stores[0], claimant("x", e).Holder)
		}
		for n := range rounds {
			id := agora.AgentID("racer " + string(rune(0x100+n)))
			start := make(chan struct{})
			errs := make([]error, 2)
			var wg sync.WaitGroup
			for i, s := range stores {
				wg.Go(func() {
					<-start
					_, errs[i] = s.Sessions.Claim(t.Context(), claimant(id, "e"+string(rune('0'+i))))
				})
			}
			close(start)
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if !errors.Is(err, presence.ErrExists) {
					t.Fatal(err)
				}
			}
			if won != 1 {
				t.Fatalf("round %d: %d winners", n, won)
			}
		}
	})
}

func TestARepeatedRequestGetsTheFirstAnswer(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		r := claimant("a", "e1")
		renewed(t, s, r.Holder)
		first := must(s.Sessions.Claim(t.Context(), r))(t)
		again := must(s.Sessions.Claim(t.Context(), r))(t)
		if again.Epoch != first.Epoch || again.Session != first.Session || again.Resumed {
			t.Fatalf("repeated claim %+v, want %+v", again, first)
		}
	})
}

func TestATakeoverRenewsTheToken(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		claimIn(t, s, "a", "active")
		r2, r3 := claimant("a", "e2"), claimant("a", "e3")
		renewed(t, s, r2.Holder)
		r2.Resume, r3.Resume = "token-e1", "token-e1"
		_ = must(s.Sessions.Claim(t.Context(), r2))(t)
		_, err := s.Sessions.Claim(t.Context(), r3)
		is(t, err, presence.ErrExists)
		r3.Resume = "token-e2"
		_ = must(s.Sessions.Claim(t.Context(), r3))(t)
	})
}

// The answer that carries the new token may be lost with its socket.
func TestAnAgentThatNeverGotItsNewTokenReturnsWithTheOneBefore(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c := claimIn(t, s, "a", "grace")
		for _, presented := range []string{"token-e1", "token-e1", "token-e1"} { // each time it becomes a token that nobody gets
			r := claimant("a", "e2")
			r.Resume, r.ResumeSession, r.Token = presented, c.Session, "lost "+presented
			again := must(s.Sessions.Claim(t.Context(), r))(t)
			ok(t, s.Sessions.Return(t.Context(), again))
		}
		r := claimant("a", "e2")
		r.Token = "the next"
		_, err := s.Sessions.Claim(t.Context(), withToken(r, "token-e2"))
		is(t, err, presence.ErrWrongToken)
		ok(t, s.Sessions.Return(t.Context(), must(s.Sessions.Claim(t.Context(), withToken(r, "")))(t)))
		_, err = s.Sessions.Claim(t.Context(), withToken(r, "token-e1")) // there was one since, which got its answer for all that is known
		is(t, err, presence.ErrWrongToken)
		_ = must(s.Sessions.Claim(t.Context(), withToken(r, "the next")))(t)
	})
}

// Anyone who names no session can't tell that one which continues is not that which it has had: it learns of a new one
// instead.
func TestASessionThatNobodyWasToldOfGoesOnForNobody(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		for _, held := range []string{"given back", "dead"} {
			r, next := claimant(agora.AgentID(held), "e1"), claimant(agora.AgentID(held), "e2")
			unheard := must(s.Sessions.Claim(t.Context(), r))(t)
			if held == "given back" {
				ok(t, s.Sessions.Return(t.Context(), unheard))
			}
			_, err := s.Sessions.Claim(t.Context(), next)
			is(t, err, presence.ErrEnding)
			ending, _, err := s.Sessions.Ending(t.Context(), r.Tenant, r.Agent)
			ok(t, err)
			ok(t, s.Sessions.Finished(t.Context(), ending, false))
			c := must(s.Sessions.Claim(t.Context(), next))(t)
			if c.Resumed || c.Session == unheard.Session {
				t.Errorf("%s: claimed as %+v after %+v", held, c, unheard)
			}
		}
	})
}

func withToken(r presence.ClaimRequest, resume string) presence.ClaimRequest {
	r.Resume = resume
	return r
}

func TestTheThirdHolderWaitsForTheFirstToo(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		c1 := claimIn(t, s, "a", "active")
		r2, r3 := claimant("a", "e2"), claimant("a", "e3")
		r2.Resume, r3.Resume = "token-e1", "token-e2"
		c2 := must(s.Sessions.Claim(t.Context(), r2))(t)
		_, err := s.Sessions.Begin(t.Context(), c2)
		is(t, err, presence.ErrUnsettled)
		c3 := must(s.Sessions.Claim(t.Context(), r3))(t)
		if len(c3.Unsettled) != 2 || c3.Unsettled[0].Epoch != c1.Epoch || c3.Unsettled[1].Epoch != c2.Epoch {
			t.Fatalf("unsettled %+v, want epochs %d and %d", c3.Unsettled, c1.Epoch, c2.Epoch)
		}
		_, err = s.Sessions.Begin(t.Context(), c2)
		is(t, err, presence.ErrDeposed)
		_, err = s.Sessions.Settle(t.Context(), c2, c3.Unsettled[0], true)
		is(t, err, presence.ErrDeposed)

		left := must(s.Sessions.Settle(t.Context(), c3, c3.Unsettled[1], true))(t)
		if len(left) != 1 {
			t.Fatalf("left %+v", left)
		}
		_, err = s.Sessions.Begin(t.Context(), c3)
		is(t, err, presence.ErrUnsettled)
		left = must(s.Sessions.Settle(t.Context(), c3, left[0], false))(t)
		if len(left) != 0 {
			t.Fatalf("left %+v", left)
		}
		rec := must(s.Sessions.Begin(t.Context(), c3))(t)
		if rec.Clean || rec.Dirty != c3.Epoch-1 {
			t.Fatalf("clean %v, dirty %d; want false, %d", rec.Clean, rec.Dirty, c3.Epoch-1)
		}
	})
}

func TestEpochsGrowThoughTheServerLostEverything(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		r := claimant("a", "e1")
		before := must(s.Sessions.Claim(t.Context(), r))(t)
		srv.empty()
		await.True(t, "the server is back", func() bool { return s.SetWhole(t.Context()) == nil })
		var after presence.Claim
		await.True(t, "claim after the restart", func() bool {
			var err error
			after, err = s.Sessions.Claim(t.Context(), r)
			return err == nil
		})
		if after.Epoch <= before.Epoch || after.Resumed {
			t.Fatalf("after %+v, before %+v", after, before)
		}
	})
}

func TestDeposedHolderChangesNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{})
		old := claimIn(t, s, "a", "active")
		r := claimant("a", "e2")
		r.Resume = "token-e1"
		c, _ := begun(t, s, r)
		to := agora.ToAgent(tenant, "b")
		calls := map[string]error{
			"Lose":         s.Sessions.Lose(t.Context(), old, presence.Position{Cursor: 9}, nil, false),
			"End":          s.Sessions.End(t.Context(), old),
			"HandedOver":   s.Sessions.HandedOver(t.Context(), old, presence.Position{Cursor: 9}, nil, true),
			"SetCard":      second(s.Directory.SetCard(t.Context(), old, "alice", agora.Agent{Name: "old"})),
			"Lanes.Use":    s.Lanes.Use(t.Context(), old, to, nil),
			"CloseStreams": s.Lanes.CloseStreams(t.Context(), old, to, []string{"x"}),
			"Cancel":       s.Lanes.Cancel(t.Context(), old, presence.Stream{Peer: "b", Stream: "x"}),
			"Uncancel":     s.Lanes.Uncancel(t.Context(), old, "b", "x"),
			"Finished":     s.Sessions.Finished(t.Context(), old, false),
		}
		_, calls["Join"] = s.Spaces.Join(t.Context(), old, "room", presence.Public, true)
		for name, err := range calls {
			if !errors.Is(err, presence.ErrDeposed) {
				t.Errorf("%s = %v, want ErrDeposed", name, err)
			}
		}
		ok(t, s.Positions.Write(t.Context(), []presence.Moved{{Claim: old, Position: presence.Position{Cursor: 9}}}))
		rec := must(s.Sessions.Begin(t.Context(), c))(t)
		if rec.Position.Cursor != 0 || rec.Card.Name != "the a" || len(rec.Lanes) != 0 || len(rec.Spaces) != 0 {
			t.Errorf("record %+v", rec)
		}
	})
}
