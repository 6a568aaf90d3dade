package presence_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// short is a lease and a grace that a test can wait for.
func short() presence.Config {
	return presence.Config{Lease: 200 * time.Millisecond, Grace: 100 * time.Millisecond}
}

func TestADeadEdgesAgentsAreEndedExactlyOnceByManySweepers(t *testing.T) {
	agents := 260 // more than one batch
	if testing.Short() {
		agents = 50
	}
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(short())
		raw := srv.client()
		defer raw.Close()
		dead := presence.Holder{Edge: "dead one", Incarnation: "x y"}
		renewed(t, s, dead)
		for n := range agents {
			r := claimant(agora.AgentID(fmt.Sprint("agent ", n)), "e")
			r.Holder = dead
			_ = must(s.Sessions.Claim(t.Context(), r))(t)
		}
		manySweepers(t, func(h presence.Holder) {
			sweepUntil(t, s, h, 0, func([]presence.Claim) bool {
				return raw.ZCard(t.Context(), presence.ClaimsKey(dead)).Val() == 0
			})
		})
		var mu sync.Mutex
		finished := map[agora.AgentID]int{}
		calm := srv.store(presence.Config{}) // what is not finished within its lease comes up again, and none takes an hour
		manySweepers(t, func(h presence.Holder) {
			sweepUntil(t, calm, h, 64, func(ending []presence.Claim) bool {
				for _, c := range ending {
					err := calm.Sessions.Finished(t.Context(), c, false)
					mu.Lock()
					if err == nil && c.Session == "s-e" && len(c.Unsettled) == 1 && c.Unsettled[0].Holder == dead {
						finished[c.Agent]++
					} else {
						t.Errorf("finish %+v: %v", c, err)
					}
					mu.Unlock()
				}
				mu.Lock()
				defer mu.Unlock()
				return len(finished) >= agents
			})
		})
		for id, n := range finished {
			if n != 1 {
				t.Errorf("%s was finished %d times", id, n)
			}
		}
		if left := must(s.Directory.Agents(t.Context(), tenant))(t); len(left) != 0 {
			t.Errorf("%d agents still have a session", len(left))
		}
	})
}

// manySweepers has several edges sweep side by side.
func manySweepers(t *testing.T, sweep func(presence.Holder)) {
	t.Helper()
	var wg sync.WaitGroup
	for k := range 2 {
		wg.Go(func() { sweep(presence.Holder{Edge: fmt.Sprint("sweeper ", k), Incarnation: "i"}) })
	}
	wg.Wait()
}

// sweepUntil has an edge sweep until done says of what is ending, max at a time, that it is enough.
func sweepUntil(t *testing.T, s *presence.Store, h presence.Holder, max int, done func([]presence.Claim) bool) {
	t.Helper()
	swept := await.Within(await.Long, func() bool {
		ending, err := s.Sweep(t.Context(), h, max)
		if err != nil {
			t.Error(err)
		}
		return err != nil || done(ending)
	})
	if !swept {
		t.Error("swept in vain")
	}
}

func TestASweptClaimIsDirtyAndItsGraceRunsFromTheLease(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		cfg := short()
		cfg.Grace = time.Hour
		s := srv.store(cfg)
		raw := srv.client()
		defer raw.Close()
		c := claimIn(t, s, "a", "active")
		ok(t, s.Positions.Write(t.Context(), []presence.Moved{{Claim: c, Position: presence.Position{TailAt: time.Now()}}}))
		ok(t, s.Sessions.Lose(t.Context(), claimIn(t, s, "b", "active"), presence.Position{TailAt: time.Now()}, nil, false))
		sweeper := presence.Holder{Edge: "s", Incarnation: "i"}
		sweepUntil(t, s, sweeper, 64, func(ending []presence.Claim) bool {
			if len(ending) != 0 {
				t.Errorf("ending within the grace: %+v", ending)
			}
			// Not by Lookup, which would note that something is sent.
			return raw.HGet(t.Context(), "agora:1:{a:default.a}:rec", "state").Val() == "2"
		})
		_, rec := begun2(t, s, claimant("a", "e2"))
		if rec.Clean || rec.Dirty != c.Epoch || rec.Quiet {
			t.Fatalf("record %+v; want dirty %d", rec, c.Epoch)
		}
		if _, rec = begun2(t, s, claimant("b", "e2")); !rec.Clean || rec.Dirty != 0 || !rec.Quiet {
			t.Fatalf("who was in grace before: %+v", rec)
		}
	})
}

func TestSweepReturnsWhatNobodyFinished(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(short())
		c := claimIn(t, s, "a", "active")
		ok(t, s.Sessions.End(t.Context(), c))
		h := presence.Holder{Edge: "s", Incarnation: "i"}
		seen := 0
		var last presence.Claim
		sweepUntil(t, s, h, 64, func(ending []presence.Claim) bool {
			for _, e := range ending {
				if e.Agent == "a" {
					seen++
					last = e
				}
			}
			return seen == 2
		})
		ok(t, s.Sessions.Finished(t.Context(), last, false))
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Away {
			t.Fatalf("found %+v", f)
		}
	})
}

func TestAResumedSessionIsNotEnded(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Grace: time.Hour})
		raw := srv.client()
		defer raw.Close()
		c := claimIn(t, s, "a", "active")
		ok(t, s.Sessions.Lose(t.Context(), c, presence.Position{}, nil, false))
		_, _ = begun(t, s, claimant("a", "e2"))
		due := func() bool { return raw.ZScore(t.Context(), presence.DueKey, "default.a").Err() == nil }
		if !due() {
			t.Fatal("nobody would look at it when its grace is over")
		}
		ok(t, raw.ZIncrBy(t.Context(), presence.DueKey, -2*float64(time.Hour.Milliseconds()), "default.a").Err()) // two hours later
		sweepUntil(t, s, presence.Holder{Edge: "s", Incarnation: "i"}, 64, func(ending []presence.Claim) bool {
			if len(ending) != 0 {
				t.Errorf("ended: %+v", ending)
			}
			return !due()
		})
		if f := must(s.Addressees.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Online {
			t.Fatalf("found %+v", f)
		}
	})
}

func TestStaleEntriesLeaveTheIndexes(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		cfg := presence.Config{Held: func(string, agora.AgentID, uint64) bool { return true }}
		s := srv.store(cfg)
		presence.SetSettled(s, 20*time.Millisecond)
		raw := srv.client()
		defer raw.Close()
		h := claimant("x", "e1").Holder
		gone := presence.Holder{Edge: "gone", Incarnation: "g"}
		renewed(t, s, gone)
		_ = claimIn(t, s, "stays", "active")
		ended(t, s, claimIn(t, s, "ended", "active"))
		_ = claimIn(t, s, "moved", "active")
		r := claimant("moved", "e2")
		r.Resume = "token-e1"
		_, _ = begun(t, s, r)
		renewed(t, s, r.Holder)
		ok(t, s.Leases.Resign(t.Context(), gone))
		sweepUntil(t, s, h, 64, func([]presence.Claim) bool {
			claims := raw.ZRange(t.Context(), presence.ClaimsKey(h), 0, -1).Val()
			agents := raw.ZRange(t.Context(), presence.AgentsKey(tenant), 0, -1).Val()
			edges := raw.ZCard(t.Context(), presence.EdgesKey).Val()
			slices.Sort(agents)
			return slices.Equal(claims, []string{"default.stays"}) && edges == 2 &&
				slices.Equal(agents, []string{"default.moved", "default.stays"})
		})
	})
}

func TestAClaimThatItsEdgeKnowsNothingOfIsLetGo(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		calm := srv.store(presence.Config{}) // e1 has its lease for long
		_, _ = claimIn(t, calm, "known", "active"), claimIn(t, calm, "stray", "active")
		s := srv.store(presence.Config{
			Lease: 100 * time.Millisecond, // of the sweeper's: half of it later a claim may be asked back
			Held:  func(tn string, id agora.AgentID, _ uint64) bool { return tn == tenant && id == "known" },
		})
		presence.SetSettled(s, 60*time.Millisecond) // more than that half: no claim is asked back before it may be taken
		sweepUntil(t, s, claimant("x", "e1").Holder, 64, func(ending []presence.Claim) bool {
			if f := must(s.Addressees.Lookup(t.Context(), tenant, "known"))(t); f.State != presence.Online {
				t.Errorf("known: %+v", f)
			}
			return must(s.Addressees.Lookup(t.Context(), tenant, "stray"))(t).State == presence.Away
		})
	})
}
