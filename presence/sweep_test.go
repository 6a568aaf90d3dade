package presence_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// short is a lease and a grace that a test can wait for.
func short() presence.Config {
	return presence.Config{Lease: 400 * time.Millisecond, Grace: 300 * time.Millisecond}
}

func TestADeadEdgesAgentsAreEndedExactlyOnceByManySweepers(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		agents := 1500 // more than one batch
		if testing.Short() {
			agents = 50
		}
		cfg := short()
		cfg.Lease = 2 * time.Second // long enough to claim them all, also on a busy machine
		s := srv.store(cfg)
		dead := presence.Holder{Edge: "dead one", Incarnation: "x y"}
		renewed(t, s, dead)
		for n := range agents {
			r := claimant(agora.AgentID(fmt.Sprint("agent ", n)), "e")
			r.Holder = dead
			_ = must(s.Claim(t.Context(), r))(t)
		}
		var mu sync.Mutex
		finished := map[agora.AgentID]int{}
		var wg sync.WaitGroup
		for k := range 2 {
			st := srv.store(cfg)
			h := presence.Holder{Edge: fmt.Sprint("sweeper ", k), Incarnation: "i"}
			wg.Go(func() {
				sweepUntil(t, st, h, func(ending []presence.Claim) bool {
					for _, c := range ending {
						err := st.Finished(t.Context(), c)
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
		}
		wg.Wait()
		for id, n := range finished {
			if n != 1 {
				t.Errorf("%s was finished %d times", id, n)
			}
		}
		if left := must(s.Agents(t.Context(), tenant))(t); len(left) != 0 {
			t.Errorf("%d agents still have a session", len(left))
		}
	})
}

// sweepUntil renews h's lease and sweeps until done says that it is enough.
func sweepUntil(t *testing.T, s *presence.Store, h presence.Holder, done func([]presence.Claim) bool) {
	deadline := time.After(30 * time.Second)
	for {
		if _, err := s.Renew(t.Context(), h, ""); err != nil {
			t.Error(err)
			return
		}
		ending, err := s.Sweep(t.Context(), h, 64) // no more than are finished within a lease, or they come up again
		if err != nil {
			t.Error(err)
			return
		}
		if done(ending) {
			return
		}
		select {
		case <-deadline:
			t.Error("swept in vain")
			return
		case <-time.After(10 * time.Millisecond):
		}
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
		ok(t, s.WritePositions(t.Context(), []presence.Moved{{Claim: c, Position: presence.Position{TailAt: time.Now()}}}))
		ok(t, s.Lose(t.Context(), claimIn(t, s, "b", "active"), presence.Position{TailAt: time.Now()}, nil, false))
		sweeper := presence.Holder{Edge: "s", Incarnation: "i"}
		sweepUntil(t, s, sweeper, func(ending []presence.Claim) bool {
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
		ok(t, s.End(t.Context(), c))
		h := presence.Holder{Edge: "s", Incarnation: "i"}
		seen := 0
		var last presence.Claim
		sweepUntil(t, s, h, func(ending []presence.Claim) bool {
			for _, e := range ending {
				if e.Agent == "a" {
					seen++
					last = e
				}
			}
			return seen == 2
		})
		ok(t, s.Finished(t.Context(), last))
		if f := must(s.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Away {
			t.Fatalf("found %+v", f)
		}
	})
}

func TestAResumedSessionIsNotEnded(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		s := srv.store(presence.Config{Grace: time.Second})
		c := claimIn(t, s, "a", "active")
		ok(t, s.Lose(t.Context(), c, presence.Position{}, nil, false))
		back := presence.Holder{Edge: "e2", Incarnation: "e2-life"}
		_, _ = begun(t, s, claimant("a", "e2"))
		until := time.Now().Add(2 * time.Second)
		sweepUntil(t, s, back, func(ending []presence.Claim) bool {
			if len(ending) != 0 {
				t.Errorf("ended: %+v", ending)
			}
			return time.Now().After(until)
		})
		if f := must(s.Lookup(t.Context(), tenant, "a"))(t); f.State != presence.Online {
			t.Fatalf("found %+v", f)
		}
	})
}

func TestStaleEntriesLeaveTheIndexes(t *testing.T) {
	eachServer(t, func(t *testing.T, srv *server) {
		cfg := presence.Config{Lease: 3 * time.Second, Held: func(string, agora.AgentID, uint64) bool { return true }}
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
		ok(t, s.Resign(t.Context(), gone))
		sweepUntil(t, s, h, func([]presence.Claim) bool {
			renewed(t, s, r.Holder)
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
		cfg := presence.Config{Lease: 3 * time.Second, Held: func(tn string, id agora.AgentID, _ uint64) bool { return tn == tenant && id == "known" }}
		s := srv.store(cfg)
		presence.SetSettled(s, 1600*time.Millisecond) // more than half a lease: no claim is asked back before it may be taken
		_, _ = claimIn(t, s, "known", "active"), claimIn(t, s, "stray", "active")
		sweepUntil(t, s, claimant("x", "e1").Holder, func([]presence.Claim) bool {
			if f := must(s.Lookup(t.Context(), tenant, "known"))(t); f.State != presence.Online {
				t.Errorf("known: %+v", f)
			}
			return must(s.Lookup(t.Context(), tenant, "stray"))(t).State == presence.Away
		})
	})
}
